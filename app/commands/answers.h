#pragma once
// What the outputs of a model say of an example: which of them are predictions, and of what.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/pipeline_spec.h"
#include "app/report/console.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

// The scores of one class among others; of any number of classes; values to be read as they are.
enum class Answer { kOneClass, kAnyClasses, kValues };

// Names of classes, or of values, by number; one without a name is called by its number.
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

// The outputs that are predictions, in the order of the net: by their losses, else by the run's metrics and by the operator that makes them. The value
// of a loss is none, and neither is an image, or a list of numbers too long to read; where the model gives others beside it, that is said. Throws
// kUsage where there are no others, with what to do.
std::vector<AnswerHead> AnswersOf(const Model& model, const PipelineSpec& run, report::Console& console);

}  // namespace mxtrain::commands
