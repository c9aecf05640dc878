// SPDX-License-Identifier: Apache-2.0
#pragma once
// The weight of an example: a number from 0 by which its loss is multiplied, and with which it
// counts in metrics. It is a label field of a source, and an array [batch] among the labels of a
// batch, of this name, after the labels themselves. Nets do not know it: the trainer weighs the
// gradients of losses (train/example_weights.h), LossReport and Metric weigh what they add. The
// rule: gradients are of sum(w l) / batch, what is reported is sum(w l) / sum(w).
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/io/source.h"
#include "mxtrain/io/token_position.h"

namespace mxtrain {

inline constexpr const char* kExampleWeight = "example_weight";

namespace io {

// The position of the weight among the label fields of a source; nothing if it has none.
inline std::optional<size_t> WeightField(const Source& source) {
  const std::vector<FieldSpec>& labels = source.label_fields();
  const auto found = std::ranges::find(labels, kExampleWeight, &FieldSpec::name);
  if (found == labels.end()) return std::nullopt;
  return static_cast<size_t>(found - labels.begin());
}

// Throws kData for a weight that is negative or not finite, at place(i), and if all are 0. `what`:
// the file.
void CheckWeights(std::span<const float> weights, const std::string& what,
                  const std::function<std::string(size_t)>& place);

// The weights of the examples of a source.
struct MXTRAIN_API WeightSummary {
  int64_t examples = 0, zeros = 0;
  double least = 0, mean = 0, most = 0;
  int64_t heaviest = 0;  // the first example whose weight is `most`
  // Its share of the sum of all weights.
  double Share() const { return most / (mean * static_cast<double>(examples)); }
  std::string ToText() const;  // "from 0 to 3, mean 1.2; 5 of 100 are 0"
};
// Nothing if it has none.
MXTRAIN_API std::optional<WeightSummary> SummarizeWeights(const Source& source);

// Whether a field, or an array, stands beside the labels and is none.
inline bool IsBesideLabels(const std::string& name) {
  return name == kTokenPosition || name == kExampleWeight;
}

// Whether the examples of a source have one label, beside which others may stand.
inline bool HasOneLabel(const Source& source) {
  const std::vector<FieldSpec>& labels = source.label_fields();
  return !labels.empty() && !IsBesideLabels(labels[0].name) &&
         std::all_of(labels.begin() + 1, labels.end(),
                     [](const FieldSpec& field) { return IsBesideLabels(field.name); });
}

}  // namespace io

}  // namespace mxtrain
