// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a net and its arrays to an ONNX model for inference, opset 17. Loss layers become what they
// output; Dropout disappears. An operator that ONNX cannot express throws kConfig with its name and
// its node. Layers, values and arrays keep their names in the net: "fc", "fc_output", "fc_weight".
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/onnx/model.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::onnx {

inline constexpr int64_t kExportOpset = 17;

struct ExportInput {
  std::string name;
  TShape shape;  // of one example
  DType type = DType::kFloat32;
};

struct ExportRequest {
  Symbol symbol;  // its outputs need no label; labels that losses read are skipped
  std::vector<ExportInput> inputs;
  const std::map<std::string, NDArray>*args = nullptr, *auxs = nullptr;
  std::map<std::string, std::string> metadata;
  // In which the parts of composite layers are found, with those of plug-ins; null: the built-in
  // ones.
  const OperatorRegistry* operators = nullptr;
};

// The first axis of inputs and outputs, the batch, is dynamic. Throws kConfig for operators and
// parameters without an equivalent, for outputs that ONNX does not have, for arrays that are
// missing, and for layers whose meaning depends on the size of the batch.
MXTRAIN_API Model ExportModel(const ExportRequest& request);

// Multiplies batch norms into the weights of the convolutions and matrix products whose results
// only they read. Returns how many.
MXTRAIN_API int FoldBatchNorm(Model* model);

// Stores arrays of float32 with at least two elements in float16, followed by a Cast, so that
// arithmetic stays float32. `parameters`: the arrays of the net, whose numbers are rounded; other
// arrays, and those of whole numbers, which may be positions, are stored so only if float16 holds
// them exactly. Throws kConfig for parameters beyond float16.
MXTRAIN_API void StoreInFloat16(Model* model, const std::set<std::string>& parameters);

}  // namespace mxtrain::onnx
