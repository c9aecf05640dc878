// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layers that are exported as the graph of operators that computes the same
// (OperatorProperty::Lower). Private to onnx.
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/operator/composite.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::onnx {

// An axis whose lengths differ between two batches is TShape::kUnknown.
TShape MergedShape(const TShape& a, const TShape& b);

// Values: output `output` of part `step`; step < 0: an argument of the layer.
struct ExportPart {
  std::shared_ptr<const OperatorProperty> op;
  std::string name;  // the layer's, for the part that gives its first output
  std::vector<Lowering::Value> inputs;
  std::vector<TShape> shapes;  // of the outputs, merged
  std::vector<DType> types;
  bool needed = false;  // by an output of the layer that is read
};
struct ExportParts {
  std::vector<ExportPart> parts;
  std::vector<Lowering::Value> outputs;  // of the layer
};

// An argument of the layer, for two sizes of the batch.
struct ExportArgument {
  TShape shapes[2];
  DType type = DType::kUnknown;
};

// The parts of a layer as it predicts, down to operators that `has_converter` accepts; nullopt if
// the layer, or a part without a converter, has no graph. `read`: the outputs that something reads.
// Throws kConfig if the parts themselves depend on the size of the batch.
std::optional<ExportParts> FindParts(
    const mxtrain::Node& layer, const std::vector<ExportArgument>& arguments,
    const std::set<int>& read, const OperatorRegistry& registry,
    const std::function<bool(const std::string& op)>& has_converter);

}  // namespace mxtrain::onnx
