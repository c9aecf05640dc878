// SPDX-License-Identifier: Apache-2.0
// The library without the program: imperative arrays, a net as a symbol, an executor, and a
// training loop that learns y = x1 xor x2 by plain gradient descent. Built and run as the test
// `example_imperative`; the exit code says whether it learned.
#include <cmath>
#include <cstdio>
#include <random>

#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/arithmetic.h"

using namespace mxtrain;

int main() {
  Runtime runtime({}, BuiltinOperators());  // engine, memory, threads; outlives every array
  const OperatorRegistry& operators = runtime.operators();

  // NDArray: calls return before the work is done; ToVector waits.
  const NDArray x = NDArray::FromVector(runtime, {4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  const NDArray y = NDArray::FromVector(runtime, {4}, {0, 1, 1, 0});
  const NDArray doubled = x * 2 + 1;
  std::printf("2 x + 1 of the last row: %g %g\n", doubled.ToVector()[6], doubled.ToVector()[7]);

  // Symbol: missing arguments become variables: fc1_weight, fc1_bias, softmax_label.
  const auto layer = [&](const char* op, const char* name, const Kwargs& kwargs,
                         const Symbol& input) {
    return Symbol::Create(operators, op, name, kwargs, std::vector<Symbol>{input});
  };
  const Symbol hidden =
      layer("FullyConnected", "fc1", {{"num_hidden", "8"}}, Symbol::Variable("data"));
  const Symbol active = layer("Activation", "tanh", {{"act_type", "tanh"}}, hidden);
  const Symbol net = layer("SoftmaxOutput", "softmax", {},
                           layer("FullyConnected", "fc2", {{"num_hidden", "2"}}, active));

  // Executor: inputs are fed at each step; the other arguments are parameters with gradients.
  Executor::BindRequest request;
  request.inputs = {"data", "softmax_label"};
  request.shapes = {{"data", {4, 2}}, {"softmax_label", {4}}};
  for (const std::string& name : net.ListArguments()) {
    if (!request.inputs.contains(name)) request.grad_req[name] = executor::GradReq::kWrite;
  }
  const auto executor = Executor::SimpleBind(runtime, net, request);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const auto& [name, array] : executor->args()) {
    std::vector<float> values(static_cast<size_t>(array.shape().Size()));
    for (float& value : values) value = name.ends_with("_weight") ? normal(random) : 0;
    NDArray(array).CopyFrom(NDArray::FromVector(runtime, array.shape(), values));
  }

  // Gradients are sums over the batch: the step is divided by its size.
  const NDArray batch[] = {x, y};  // in the order of executor->input_names()
  for (int step = 0; step < 500; ++step) {
    executor->Step(batch);
    for (const auto& [name, gradient] : executor->grads()) {
      NDArray weight = executor->arg(name);
      weight -= gradient * (0.5 / 4);
    }
  }
  executor->Forward(batch);
  const std::vector<float> probabilities = executor->outputs()[0].ToVector();  // [4, 2]
  double loss = 0;
  for (size_t i = 0; i < 4; ++i)
    loss -= std::log(probabilities[2 * i + static_cast<size_t>(y.ToVector()[i])]) / 4;
  std::printf("cross entropy after 500 steps: %.4f (it began near %.4f)\n", loss, std::log(2.0));
  return loss < 0.1 ? 0 : 1;
}
