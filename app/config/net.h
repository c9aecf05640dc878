// SPDX-License-Identifier: Apache-2.0
#pragma once
// The net grammar: from `net`, `blocks` and `vars` of a configuration to a Symbol.
//
//   layers:                                     each takes the previous one, unless it has `inputs`
//     - Flatten                                 an operator of the registry
//     - FullyConnected: {num_hidden: 10, name: fc, inputs: a.output, weight: w, when: "${deep}",
//                        attrs: {lr_mult: 0}}
//     - Variable: {name: w, shape: [10, 4], init: {normal: 0.01}, lr_mult: 2}
//                                               a parameter that any argument may refer to
//     - bottleneck: {width: 64, name: unit1}    a block: its layers, their names below "unit1_"
//     - repeat: {count: 3, index: i, layers: [...]}
//
// Reserved keys of a layer: name, inputs, attrs, when. Any other key is a parameter of the operator
// or, if there is none of that name, one of its arguments: the name of a layer, a Variable, another
// layer's parameter ("fc_weight") or a label. An input is NAME or NAME.OUTPUT. Visible inside a
// block: its parameters in ${...}, its own layers, its inputs (`input`, unless named) and the
// Variables outside.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "app/config/diagnostic.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/lora.h"

namespace mxtrain::config {

struct NetInput {
  std::string name;
  TShape shape;  // of one example; of unknown rank for a label whose shape follows from its loss
  DType dtype = DType::kFloat32;
};

struct Net {
  // What rates count: "images" if an input has the axes of one, else "examples".
  const char* NameOfExamples() const {
    for (const NetInput& input : inputs) {
      if (input.shape.has_rank() && input.shape.ndim() == 3) return "images";
    }
    return "examples";
  }

  struct Origin {
    Place place;
    std::vector<std::string> notes;  // the blocks around it
  };
  Symbol symbol;  // a group when there are several heads; every node's `where` is "file:line"
  std::vector<NetInput> inputs;                        // as declared
  std::vector<NetInput> labels;                        // declared ones, then those that losses name
  std::map<std::string, Origin, std::less<>> origins;  // by node name
  // Of the layers' parameters that are texts and look like numbers.
  std::vector<Place> texts;
  // With train.lora, once its factors are in `symbol`: their names, and the net without them.
  std::vector<LoraFactors> lora;
  Symbol without_factors;
};

// The value of a name that is neither in `vars` nor a parameter: "classes", the number of classes
// in the data, and "tokens", that of the ids of texts. Called only if the net uses it; returns
// nothing if it is unknown.
using BuiltinValues = std::function<std::optional<int64_t>(std::string_view name)>;

// Errors go to `diagnostics`; the result is meaningful only if there are none. An invalid layer is
// reported once: layers that depend on it are not.
Net BuildNet(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins,
             Diagnostics* diagnostics);

// Shapes of the inputs and the declared labels for a batch: {batch, shape...}, for
// Symbol::InferShape.
std::map<std::string, TShape> BatchShapes(const Net& net, int64_t batch);

// The same with the shapes of all labels that follow from the net. Dimensions that only the data
// say, such as how many objects an image has, are kPlannedRows: for plans without data.
inline constexpr int64_t kPlannedRows = 100;
std::map<std::string, TShape> PlannedShapes(const Net& net, int64_t batch);

// The names of the parameters: arguments that are neither inputs nor labels.
std::vector<std::string> ParametersOf(const Net& net);

// Reports an error of the library (such as a shape mismatch) at the layer that it names: the node
// whose quoted name comes first in the message; else at `fallback`.
Diagnostic ToDiagnostic(const Net& net, const Error& error, const Place& fallback);

}  // namespace mxtrain::config
