// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/composite.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/axes.h"

namespace mxtrain {

Lowering::Value Lowering::Reshape(Value value, const TShape& shape) {
  return (*this)("_reshape_to", {value}, {{"shape", params::Print(shape)}});
}

Lowering::Value Lowering::AlongAxis(int argument, int axis, int ndim) {
  return Reshape({-1, argument}, mxtrain::AlongAxis(ndim, axis, shape(argument).Size()));
}

void Lowering::SetOutput(int i, Value value) {
  MXTRAIN_ASSERT(i >= 0 && static_cast<size_t>(i) < outputs_.size());
  MXTRAIN_ASSERT(outputs_[static_cast<size_t>(i)].step == kUnset);
  outputs_[static_cast<size_t>(i)] = value;
}

bool Lowering::complete() const {
  return std::none_of(outputs_.begin(), outputs_.end(),
                      [](Value value) { return value.step == kUnset; });
}

std::vector<TShape> InferLowered(const OperatorRegistry& registry,
                                 const OperatorProperty& composite, const std::vector<TShape>& in) {
  Lowering graph(in, composite.NumOutputs());
  composite.Lower(&graph);
  if (!graph.complete())
    Throw(ErrorKind::kBug, "{}: its graph does not set every output", composite.TypeString());
  std::vector<std::vector<TShape>> of_step;
  const auto shape_of = [&](Lowering::Value value) {
    return value.step < 0
               ? in[static_cast<size_t>(value.output)]
               : of_step[static_cast<size_t>(value.step)][static_cast<size_t>(value.output)];
  };
  for (const Lowering::Step& step : graph.steps()) {
    std::vector<TShape> shapes, aux;
    for (const Lowering::Value value : step.in) shapes.push_back(shape_of(value));
    try {
      const auto op = registry.Create(step.op, step.kwargs);
      if (!op->ListAuxiliaryStates().empty())
        Throw(ErrorKind::kBug, "{} has auxiliary states, which parts may not have", step.op);
      std::vector<TShape>& out =
          of_step.emplace_back(static_cast<size_t>(op->NumOutputs()), TShape());
      MXTRAIN_ASSERT(op->InferShape(&shapes, &out, &aux));
    } catch (const Error&) {
      RethrowWithPrefix(std::current_exception(), composite.TypeString());
    }
  }
  std::vector<TShape> out;
  for (const Lowering::Value value : graph.outputs()) out.push_back(shape_of(value));
  return out;
}

}  // namespace mxtrain
