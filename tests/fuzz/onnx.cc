// SPDX-License-Identifier: Apache-2.0
// ONNX files: parsed, imported, made a symbol.
#include "mxtrain/onnx/import.h"
#include "mxtrain/onnx/model_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

std::vector<std::string> LargeInputs() {
  if (!onnx::HasOnnxFiles()) return {};
  onnx::Model chain;
  chain.opset = 17;
  chain.inputs = {{"x0", onnx::ElementType::kFloat, true, {-1, 4}, {}}};
  for (int i = 0; i < 3000; ++i)
    chain.nodes.push_back({"Relu", "", "", {format("x{}", i)}, {format("x{}", i + 1)}, {}});
  chain.outputs = {{"x3000", onnx::ElementType::kFloat, true, {-1, 4}, {}}};
  onnx::Model names = chain;  // layers of one name
  for (onnx::ModelNode& node : names.nodes) node.name = "relu";
  return {onnx::WriteModel(chain), onnx::WriteModel(names)};
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain;
  using namespace mxtrain::fuzz;
  static const std::shared_ptr<OperatorRegistry> operators = BuiltinOperators();
  if (!onnx::HasOnnxFiles()) return 0;
  MayRefuse([&] {
    const onnx::Model model = onnx::ParseModel(TextOf(data, size), "input");
    const onnx::ImportedNet net =
        onnx::ImportModel(model, *operators, {.most_computed_bytes = int64_t{16} << 20});
    onnx::ToSymbol(net, *operators);
  });
  return 0;
}
