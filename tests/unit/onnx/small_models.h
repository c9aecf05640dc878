// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX models of a few nodes, made by hand, and what their import gives.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/onnx/import.h"
#include "tests/support/error_message.h"
#include "tests/support/small_nets.h"

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

}  // namespace mxtrain::test
