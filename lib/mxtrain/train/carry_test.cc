// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/carry.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/train/net_inputs.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain {
namespace {

constexpr int64_t kCarryRows = 3, kCarryWidth = 2;

// Of data [rows, steps, width].
Symbol RecurrentNet(const std::string& mode, const Kwargs& more = {}) {
  const auto create = [](const std::string& op, const std::string& name, const Kwargs& kwargs,
                         const Symbol& input) {
    return Symbol::Create(test::TestRegistry(), op, name, kwargs, std::vector{input});
  };
  Kwargs kwargs = {{"mode", mode}, {"state_size", "5"}, {"num_layers", "2"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  const Symbol by_step =
      create("transpose", "by_step", {{"axes", "(1, 0, 2)"}}, Symbol::Variable("data"));
  const Symbol by_row = create("transpose", "by_row", {{"axes", "(1, 0, 2)"}},
                               create("RNN", "layer", kwargs, by_step));
  return create("LinearRegressionOutput", "out", {}, by_row);
}

struct BoundWindow {
  std::unique_ptr<Executor> executor;
  std::unique_ptr<CarriedStates> carried;
};

BoundWindow BindWindow(Runtime& runtime, const CarryingNet& net, int64_t steps, int64_t width) {
  const std::vector<DataDesc> arrays = WithStates(
      {{"data", {kCarryRows, steps, kCarryWidth}}, {"out_label", {kCarryRows, steps, width}}}, net);
  BoundWindow bound;
  bound.executor = Executor::SimpleBind(runtime, net.net,
                                        EvaluationRequest(net.net, arrays, Context::cpu(), {}));
  for (const auto& [name, array] : bound.executor->args()) {
    std::vector<double> values = test::ValuesFor(name, array.shape().Size());
    for (double& value : values) value *= 0.6;
    test::SetValues(array, values);
  }
  bound.carried = std::make_unique<CarriedStates>(runtime, *bound.executor, net);
  return bound;
}

std::vector<double> RunWindow(Runtime& runtime, const BoundWindow& bound,
                              const std::vector<double>& data, int64_t steps, int64_t width) {
  NDArray x(runtime, {kCarryRows, steps, kCarryWidth}), label(runtime, {kCarryRows, steps, width});
  test::SetValues(x, data);
  label.Fill(0);
  std::vector<NDArray> inputs;
  for (const std::string& name : bound.executor->input_names())
    inputs.push_back(name == "data" ? x : name == "out_label" ? label : NDArray());
  bound.carried->PutInto(&inputs);
  bound.executor->Forward(inputs);
  bound.carried->Update();
  return test::GetValues(bound.executor->outputs()[0]);
}

// Steps `first` to `first + steps` of [rows, all, columns].
std::vector<double> Window(const std::vector<double>& whole, int64_t all, int64_t first,
                           int64_t steps, int64_t columns) {
  std::vector<double> part;
  for (int64_t row = 0; row < kCarryRows; ++row) {
    for (int64_t i = (row * all + first) * columns; i < (row * all + first + steps) * columns; ++i)
      part.push_back(whole[static_cast<size_t>(i)]);
  }
  return part;
}

TEST_CASE("carried states: windows one after the other give what the whole sequence gives") {
  constexpr int64_t kAll = 12, kSteps = 4;
  const auto runtime = test::NewRuntime();
  for (const char* mode : {"lstm", "gru", "rnn_tanh"}) {
    CAPTURE(mode);
    for (const int64_t width : {5, 4}) {
      if (width == 4 && std::string(mode) != "lstm") continue;  // projections
      const Symbol net =
          RecurrentNet(mode, width == 4 ? Kwargs{{"projection_size", "4"}} : Kwargs());
      const std::vector<double> data = test::ValuesFor("sequence", kCarryRows * kAll * kCarryWidth);
      const CarryingNet carrying = WithCarriedStates(test::TestRegistry(), net, {"layer"});
      CHECK(carrying.states.size() == (std::string(mode) == "lstm" ? 2 : 1));
      CHECK(carrying.outputs == 1);
      const BoundWindow whole =
          BindWindow(*runtime, WithCarriedStates(test::TestRegistry(), net, {}), kAll, width);
      const std::vector<double> expected = RunWindow(*runtime, whole, data, kAll, width);
      const BoundWindow window = BindWindow(*runtime, carrying, kSteps, width);
      double largest = 0, without = 0;
      for (const bool again : {false, true}) {
        if (again) window.carried->Zero();
        for (int64_t first = 0; first < kAll; first += kSteps) {
          const std::vector<double> wanted = Window(expected, kAll, first, kSteps, width);
          const std::vector<double> part = Window(data, kAll, first, kSteps, kCarryWidth);
          const std::vector<double> found = RunWindow(*runtime, window, part, kSteps, width);
          for (size_t i = 0; i < wanted.size(); ++i)
            largest = std::max(largest, std::abs(wanted[i] - found[i]));
        }
      }
      CHECK(largest < 1e-6);
      window.carried->Zero();
      const std::vector<double> late = Window(data, kAll, kSteps, kSteps, kCarryWidth);
      const std::vector<double> wanted = Window(expected, kAll, kSteps, kSteps, width);
      const std::vector<double> found = RunWindow(*runtime, window, late, kSteps, width);
      for (size_t i = 0; i < wanted.size(); ++i)
        without = std::max(without, std::abs(wanted[i] - found[i]));
      CHECK(without > 1e-3);
    }
  }
}

TEST_CASE("carried states: layers that have none are named") {
  const auto refuses = [](const Symbol& net, const std::string& layer, const std::string& text) {
    CHECK_THROWS_WITH_AS(WithCarriedStates(test::TestRegistry(), net, {layer}),
                         doctest::Contains(text.c_str()), Error);
  };
  refuses(RecurrentNet("gru"), "lstm", "there is no RNN 'lstm'; the net has layer");
  refuses(RecurrentNet("gru"), "by_row", "there is no RNN 'by_row'");
  refuses(RecurrentNet("gru", {{"bidirectional", "True"}}), "layer",
          "RNN 'layer' reads its sequences backwards too");
  const Symbol given =
      Symbol::Create(test::TestRegistry(), "RNN", "layer",
                     {{"mode", "gru"}, {"state_size", "5"}, {"num_layers", "1"}},
                     std::vector{Symbol::Variable("data")}, {{"state", Symbol::Variable("first")}});
  refuses(given, "layer", "RNN 'layer' begins with the states of 'first'");
}

}  // namespace
}  // namespace mxtrain
