// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of a model's outputs: which of them are predictions, and of what.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/report/console.h"
#include "app/session/pipeline_spec.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

// Scores of mutually exclusive classes; of any number of classes; plain values.
enum class Answer { kOneClass, kAnyClasses, kValues };

// Names of classes or values by index; unnamed ones are numbered.
class ClassNames {
 public:
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  std::string operator[](int64_t k) const;
  bool Contains(const std::string& name) const;

 private:
  std::vector<std::string> names_;
};

struct AnswerHead {
  std::string name;  // of the output: "softmax"
  int output = 0;    // its index
  Answer answer;
  ClassNames names;
  int64_t width = 0;                     // scores or values of an example
  std::optional<Standardization> units;  // of values that the net learned standardized
};

// The outputs that are predictions, in the order of the net: determined by their losses, else by
// the run's metrics and the operator that makes them. The value of a loss, an image, or a long list
// of numbers is not a prediction; skipping one is reported. `batch`: a size that the net can be
// for. Throws kUsage, with a suggestion, if there is no prediction.
std::vector<AnswerHead> AnswersOf(const Model& model, const session::PipelineSpec& run,
                                  int64_t batch, report::Console& console);

}  // namespace mxtrain::commands
