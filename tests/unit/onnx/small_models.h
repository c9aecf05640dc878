// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX models of a few nodes, made by hand, and what their import gives.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/import.h"
#include "tests/support/error_message.h"
#include "tests/support/small_nets.h"
#include "tests/unit/onnx/in_batch.h"

namespace mxtrain::test {

using onnx::ElementType;
using onnx::Model;
using onnx::ModelNode;
using onnx::ModelValue;
using onnx::Tensor;

inline ModelValue Value(const std::string& name, std::vector<int64_t> dims) {
  return {name, ElementType::kFloat, true, std::move(dims), {}};
}
inline ModelNode Node(const std::string& op, std::vector<std::string> inputs,
                      const std::string& output, onnx::Attributes attributes = {}) {
  return {op, output + "_node", "", std::move(inputs), {output}, std::move(attributes)};
}
inline Tensor Zeros(std::vector<int64_t> dims) {
  int64_t size = 1;
  for (const int64_t dim : dims) size *= dim;
  return Tensor::Floats(std::move(dims), std::vector<float>(static_cast<size_t>(size), 0.0f));
}

struct Fixture {
  std::unique_ptr<Runtime> runtime = NewRuntime();
  const OperatorRegistry& operators = runtime->operators();
  Model model;

  Fixture() {
    model.opset = 17;
    model.inputs = {Value("x", {-1, 4})};
    model.outputs = {Value("y", {-1, 3})};
  }
  onnx::ImportedNet Import() const { return onnx::ImportModel(model, operators); }
  std::string Message() const {
    return MessageOf([this] { Import(); });
  }
  // The operators of the layers, in order.
  std::vector<std::string> Operators() const {
    std::vector<std::string> ops;
    for (const auto& layer : Import().layers) ops.push_back(layer.op);
    return ops;
  }
  using Ops = std::vector<std::string>;
};

// What the imported net gives for a batch of these inputs, by their names: the numbers of each
// output.
inline std::vector<std::vector<double>> OutputsOf(
    const Fixture& fixture, int64_t batch,
    const std::map<std::string, std::vector<double>>& numbers,
    const onnx::ImportOptions& options = {}) {
  const onnx::ImportedNet net = onnx::ImportModel(fixture.model, fixture.operators, options);
  const Symbol symbol = onnx::ToSymbol(net, fixture.operators);
  const std::vector<std::string> arguments = symbol.ListArguments();
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  for (const auto& input : net.inputs) {
    if (std::ranges::find(arguments, input.name) == arguments.end()) continue;
    request.inputs.insert(input.name);
    request.shapes[input.name] = InBatch(input.shape, batch);
  }
  // In the shapes that a net takes which is built of the layers alone.
  const auto executor = BindWithValues(*fixture.runtime, symbol, request);
  const std::map<std::string, NDArray> arrays = onnx::ArraysOf(net, *fixture.runtime);
  for (const auto* own : {&executor->args(), &executor->auxs()}) {
    for (const auto& [name, array] : *own) NDArray(array).CopyFrom(arrays.at(name));
  }
  std::vector<NDArray> fed;
  for (const std::string& name : executor->input_names()) {
    fed.push_back(NDArray(*fixture.runtime, request.shapes[name]));
    SetValues(fed.back(), numbers.at(name));
  }
  executor->Forward(fed);
  std::vector<std::vector<double>> outputs;
  for (const NDArray& output : executor->outputs()) outputs.push_back(GetValues(output));
  return outputs;
}
// Of one output, for two examples of `x`.
inline std::vector<double> Outputs(const Fixture& fixture, const std::vector<double>& x) {
  return OutputsOf(fixture, 2, {{"x", x}})[0];
}
// 1/16, 2/16, ... with signs in turn: sums and products of a few are exact.
inline std::vector<double> Ramp(int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i + 1) / 16 * (i % 3 == 1 ? -1 : 1));
  return values;
}
inline Tensor RampOf(std::vector<int64_t> dims) {
  int64_t size = 1;
  for (const int64_t dim : dims) size *= dim;
  const std::vector<double> values = Ramp(size);
  return Tensor::Floats(std::move(dims), std::vector<float>(values.begin(), values.end()));
}
inline onnx::Attributes CastTo(ElementType type) {
  return {{"to", static_cast<int64_t>(type)}};
}

}  // namespace mxtrain::test
