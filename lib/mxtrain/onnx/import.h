// SPDX-License-Identifier: Apache-2.0
#pragma once
// From an ONNX model to a net: layers as a configuration writes them, with the arrays of the file
// as initial values. Opsets 6 to 28.
//
// Every array that the net reads becomes a parameter, trainable like any other: ONNX does not say
// which were trained. What follows from shapes and arrays alone is computed, in the types of the
// file, and is an array then. Layers are named after their nodes or weights: "fc" of "fc.weight".
// A batch of fixed size becomes one of any size.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/onnx/model.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::onnx {

inline constexpr int64_t kLeastOpset = 6, kMostOpset = 28;

struct ImportedNet {
  struct Input {
    std::string name;
    TShape shape;  // of one example
    DType type = DType::kFloat32;
    std::string in_file = {};  // its name there
  };
  struct Layer {
    std::string op, name;
    Kwargs params;
    // Names of inputs, variables and layers, or LAYER.OUTPUT.
    std::vector<std::string> inputs;
    // Arguments that are arrays of their own, "NAME_ARGUMENT", or (the value is not empty) a
    // variable or an array of another layer.
    std::map<std::string, std::string> arguments;
  };
  struct Variable {
    std::string name;
    TShape shape;
    // Indices, truth values and masks of infinities, which training must not change.
    bool fixed = false;
  };
  std::vector<Input> inputs;
  std::vector<Variable> variables;
  std::vector<Layer> layers;             // each after those that it reads
  std::vector<std::string> outputs;      // as Layer::inputs
  std::map<std::string, Tensor> arrays;  // of parameters and auxiliary states, float32
  std::map<std::string, std::string> metadata;
  std::vector<std::string> notes;  // sentences: where the net may differ from the file
};

struct ImportOptions {
  // Shapes of one example, by names in the file, for inputs whose file leaves lengths open. The
  // shape [C, H, W] for an input that the file has as [H, W, C] puts the channels first.
  std::map<std::string, TShape> shapes = {};
  // A softmax that only the output reads becomes SoftmaxOutput, so that the net can be trained.
  bool loss = true;
  // Outputs, by their names in the file, whose sigmoid, if nothing else reads it, becomes
  // LogisticRegressionOutput: scores of classes of which an example may have several.
  std::set<std::string> logistic = {};
  // False: the net is for the sizes in the file alone, of the first axes too, which need not be one
  // batch; an input may be a number without axes. Net::inputs has the lengths after the first axis
  // all the same.
  bool any_batch = true;
  // Of what is computed from constants, besides four times the file's own arrays: a small file must
  // not fill the memory.
  int64_t most_computed_bytes = int64_t{1} << 30;
};

// The names of the model's inputs in the net, in their order: letters, digits and underscores.
MXTRAIN_API std::vector<std::string> InputNames(const Model& model);

// Throws kConfig for what has no equivalent here: operators that outputs depend on, all at once
// with their nodes; uses of them; inputs of unknown size, or of different batches. Throws kData for
// a model that contradicts itself, such as a node that reads what no node computes. Every array of
// the result is one that the net takes, in its shape. Inputs that no output depends on are omitted.
MXTRAIN_API ImportedNet ImportModel(const Model& model, const OperatorRegistry& registry,
                                    const ImportOptions& options = {});

MXTRAIN_API Symbol ToSymbol(const ImportedNet& net, const OperatorRegistry& registry);
// The arrays by name.
MXTRAIN_API std::map<std::string, NDArray> ArraysOf(const ImportedNet& net, Runtime& runtime);

}  // namespace mxtrain::onnx
