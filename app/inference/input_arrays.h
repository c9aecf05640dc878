// SPDX-License-Identifier: Apache-2.0
#pragma once
// --input NAME=FILE.npy of `infer` and `eval`: arrays in place of images and tables, so that a
// model with any inputs can be tried. They hold what the net itself reads; no transform is applied.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/log.h"
#include "mxtrain/base/shape.h"
#include "mxtrain/io/source.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

class InputArrays {
 public:
  // Reads the files of the values that are NAME=FILE, which are removed; others are names alone.
  // The first axis of every array counts the examples. Throws kUsage if arrays differ in their
  // number, or a name is given twice; as report::ReadNpy.
  static InputArrays Take(std::vector<std::string>* inputs);

  bool empty() const { return arrays_.empty(); }
  int64_t examples() const { return examples_; }
  std::vector<std::string> Names() const;
  std::vector<std::string> Files() const;
  // Of one example, by the names that were given.
  std::map<std::string, TShape> Shapes() const;
  // Other names for inputs of the model, such as those in its ONNX file: NAME there -> in the net.
  void Rename(const std::map<std::string, std::string>& names);

  // The arrays for the inputs of a model, whose shapes they define where the model leaves them
  // open, and with `labels` for its labels. `declared`: the names of all inputs and labels, also of
  // those that were removed from the model; an array for one that is not read is reported. Throws
  // kUsage for an input without an array and for an array of another name, kData for another shape.
  std::shared_ptr<const io::Source> ForModel(Model* model, bool labels,
                                             const std::vector<std::string>& declared,
                                             const Logger& log) const;

 private:
  struct Array {
    std::string name, file;
    TShape shape;  // of one example
    std::shared_ptr<const std::vector<float>> values;
  };
  class ArraySource;

  const Array* Find(const std::string& name) const;
  std::vector<Array> arrays_;
  int64_t examples_ = 0;
};

}  // namespace mxtrain::inference
