// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/example_weight.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::io {

void CheckWeights(std::span<const float> weights, const std::string& what,
                  const std::function<std::string(size_t)>& place) {
  constexpr size_t kMostTold = 5;
  const auto is_wrong = [](float weight) { return !(weight >= 0 && std::isfinite(weight)); };
  std::vector<std::string> more;  // where there are wrong ones, after the first
  const auto first = std::ranges::find_if(weights, is_wrong);
  for (auto at = first; at != weights.end(); ++at) {
    if (at != first && is_wrong(*at))
      more.push_back(place(static_cast<size_t>(at - weights.begin())));
  }
  if (first != weights.end()) {
    Throw(ErrorKind::kData,
          "{}: the weight {:.6g} is not a finite number from 0: an example of weight 3 counts as "
          "three of them, one of weight 0 as none{}",
          place(static_cast<size_t>(first - weights.begin())), *first,
          more.empty() ? "" : "; other wrong weights: " + FirstOf(more, kMostTold, "; "));
  }
  if (std::ranges::any_of(weights, [](float weight) { return weight > 0; })) return;
  Throw(ErrorKind::kData, "{}: every example has the weight 0: there is nothing to learn", what);
}

std::optional<WeightSummary> SummarizeWeights(const Source& source) {
  const std::optional<size_t> field = WeightField(source);
  if (!field || source.size() == 0) return std::nullopt;
  WeightSummary summary;
  Sample scratch;
  double sum = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    const double weight = source.LabelOf(i, *field, &scratch)[0];
    summary.least = i == 0 ? weight : std::min(summary.least, weight);
    if (weight > summary.most) summary.heaviest = i;
    summary.most = std::max(summary.most, weight);
    summary.zeros += weight == 0 ? 1 : 0;
    sum += weight;
  }
  summary.examples = source.size();
  summary.mean = sum / static_cast<double>(summary.examples);
  return summary;
}

std::string WeightSummary::ToText() const {
  return format("from {:.4g} to {:.4g}, mean {:.4g}{}", least, most, mean,
                zeros > 0 ? format("; {} of {} are 0", zeros, examples) : "");
}

}  // namespace mxtrain::io
