// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts about a model that its file may lack and flags supply in `eval` and `infer`: PREFIX@N,
// MXNet files written by other programs.
#include <string>
#include <vector>

#include "app/commands/arguments.h"
#include "app/console/console.h"
#include "app/inference/input_arrays.h"
#include "mxtrain/train/model.h"

namespace mxtrain::commands {

class ModelFacts {
 public:
  void Declare(Arguments& arguments);  // --input, --labels, --size, --mean, --std
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::string& labels() const { return labels_; }  // the file; "" for none
  // The values of --input that are NAME=FILE.npy, once; the others remain in `inputs`. Throws as
  // InputArrays::Take, and kUsage for flags that prepare images.
  inference::InputArrays TakeArrays();
  // Sets the flags' values on the model, replacing those of its file, with a warning if it says how
  // images are prepared: class names, input size, and the pipeline that resizes images to that size
  // and normalizes them. Throws kUsage for a checkpoint, which defines its own preprocessing.
  void Complete(Model* model, console::Console& console) const;

 private:
  std::string labels_, size_, mean_, std_;
  std::vector<std::string> inputs_;
};

// The positional argument MODEL.
void DeclareModel(Arguments& arguments, std::string* model);

// --input NAME, for commands that open a model and run no data through it.
void DeclareInputs(Arguments& arguments, std::vector<std::string>* inputs);

}  // namespace mxtrain::commands
