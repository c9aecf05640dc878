#pragma once
// What `eval` and `infer` must be told of a model whose file does not say it: PREFIX@N, MXNet's files that another program wrote.
#include <string>
#include <vector>

#include "app/commands/arguments.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

class ModelFacts {
 public:
  void Declare(Arguments& arguments);  // --input, --labels, --size, --mean, --std
  const std::vector<std::string>& inputs() const { return inputs_; }
  // Adds what was said to the model, in place of what its file says: names of classes, the size of its input, and the pipeline that brings images to
  // that size and normalizes them. Throws kUsage for a checkpoint, which says how images are prepared.
  void Complete(Model* model) const;

 private:
  std::string labels_, size_, mean_, std_;
  std::vector<std::string> inputs_;
};

// --input NAME, of every command that opens a model.
void DeclareInputs(Arguments& arguments, std::vector<std::string>* inputs);

}  // namespace mxtrain::commands
