#pragma once
// What `eval` and `infer` must be told of a model whose file does not say it: PREFIX@N, the reference system's files.
#include <string>

#include "app/commands/arguments.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

class ModelFacts {
 public:
  void Declare(Arguments& arguments);  // --labels, --size, --mean, --std
  // Adds what was said to the model: names of classes, the size of its input, and the pipeline that brings pictures to that size and
  // normalizes them. Throws kUsage for a model whose file says how pictures are prepared.
  void Complete(Model* model) const;

 private:
  std::string labels_, size_, mean_, std_;
};

}  // namespace mxtrain::commands
