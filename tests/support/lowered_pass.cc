// SPDX-License-Identifier: Apache-2.0
#include "tests/support/lowered_pass.h"

#include "mxtrain/executor/executor.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {

LoweredOutcome RunLowered(const OperatorCase& c, const PassSetup& setup, executor::GradReq grad,
                          bool reference) {
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const std::vector<std::string> names = setup.property->ListArguments();
  std::vector<Symbol> variables;
  executor::BindRequest request;
  request.is_train = setup.is_train;
  request.reference_kernels = reference;
  for (size_t i = 0; i < names.size(); ++i) {
    variables.push_back(Symbol::Variable(names[i]));
    request.shapes[names[i]] = setup.in[i].shape;
    request.types[names[i]] = setup.in[i].type;
    if (setup.property->HasGradient(static_cast<int>(i))) request.grad_req[names[i]] = grad;
  }
  const Symbol net = Symbol::Create(TestRegistry(), c.op, "net", c.kwargs, variables);
  const auto executor = Executor::SimpleBind(*runtime, net, request);
  for (size_t i = 0; i < names.size(); ++i) {
    SetValues(executor->arg(names[i]), setup.in_values[i]);
    if (grad == executor::GradReq::kAdd && executor->grads().contains(names[i]))
      SetValues(executor->grad(names[i]), setup.old_grad[i]);
  }
  executor->Forward({});
  LoweredOutcome outcome;
  for (const NDArray& output : executor->outputs()) outcome.out.push_back(GetValues(output));
  if (grad == executor::GradReq::kNull) return outcome;

  std::vector<NDArray> heads;  // none of a loss
  const int wanted = setup.property->NeedsHeadGradient() ? setup.property->NumVisibleOutputs() : 0;
  for (int i = 0; i < wanted; ++i) {
    const size_t o = static_cast<size_t>(i);
    heads.emplace_back(*runtime, setup.out[o].shape, setup.out[o].type);
    SetValues(heads.back(), setup.head_values[o]);
  }
  executor->Backward(heads);
  for (const std::string& name : names) {
    outcome.in_grad.push_back(executor->grads().contains(name) ? GetValues(executor->grad(name))
                                                               : Values());
  }
  return outcome;
}

}  // namespace mxtrain::test
