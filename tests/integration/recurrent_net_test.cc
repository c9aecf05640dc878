// SPDX-License-Identifier: Apache-2.0
// Nets with RNN: states that are not given are zeros, of the batch's size, and no parameters.
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/registry.h"
#include "mxtrain/symbol/symbol.h"
#include "tests/support/error_message.h"
#include "tests/support/naive_runtime.h"

namespace mxtrain {
namespace {

using test::MessageOf;
using test::Says;

const std::shared_ptr<const OperatorRegistry>& Operators() {
  static const std::shared_ptr<const OperatorRegistry> operators = BuiltinOperators();
  return operators;
}

Symbol Lstm(const std::string& name, const Symbol& data,
            const std::map<std::string, Symbol>& named = {}, const Attrs& attrs = {}) {
  return Symbol::Create(*Operators(), "RNN", name,
                        {{"mode", "lstm"}, {"state_size", "3"}, {"num_layers", "2"}},
                        std::vector{data}, named, attrs, "");
}

// Outputs of a net of data [5, batch, 4], with parameters and, if it has them, states of zeros.
std::vector<float> OutputOf(const Symbol& net, int64_t batch) {
  Runtime runtime(test::NaiveOptions(), Operators());
  Executor::BindRequest request;
  request.inputs = {"data"};
  request.shapes["data"] = TShape{5, batch, 4};
  const auto bound = Executor::SimpleBind(runtime, net, request);
  for (const auto& [name, array] : bound->args()) {
    std::vector<float> values(static_cast<size_t>(array.shape().Size()));
    for (size_t i = 0; i < values.size() && !Says(name, "state"); ++i)
      values[i] = 0.4f * std::sin(static_cast<float>(i));
    NDArray(array).CopyFrom(NDArray::FromVector(runtime, array.shape(), values));
  }
  std::vector<float> data(static_cast<size_t>(5 * batch * 4));
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::cos(static_cast<float>(3 * i));
  bound->Forward(std::vector{NDArray::FromVector(runtime, TShape{5, batch, 4}, data)});
  return bound->outputs()[0].ToVector();
}

}  // namespace

TEST_CASE("RNN without states begins with zeros of the batch's size") {
  const Symbol data = Symbol::Variable("data"), net = Lstm("lstm", data);
  CHECK(net.ListArguments() == std::vector<std::string>{"data", "lstm_parameters"});
  CHECK(net.ListOutputs() == std::vector<std::string>{"lstm_output"});
  const Symbol given =
      Lstm("lstm", data,
           {{"state", Symbol::Variable("state")}, {"state_cell", Symbol::Variable("state_cell")}});
  for (const int64_t batch : {2, 3}) {
    const std::vector<float> output = OutputOf(net, batch);
    CHECK(output.size() == static_cast<size_t>(5 * batch * 3));
    CHECK(output == OutputOf(given, batch));
    CHECK(output == OutputOf(Symbol::FromJson(*Operators(), net.ToJson()), batch));
  }
}

TEST_CASE("unnamed layers of RNN, and one with one of its states") {
  const Symbol data = Symbol::Variable("data"), both = Lstm("", Lstm("", data));
  CHECK(both.ListArguments() ==
        std::vector<std::string>{"data", "rnn0_parameters", "rnn1_parameters"});
  CHECK(OutputOf(both, 2).size() == 30);
  const Symbol cell = Lstm("lstm", data, {{"state_cell", Symbol::Variable("c")}});
  CHECK(cell.ListArguments() == std::vector<std::string>{"data", "lstm_parameters", "c"});
}

TEST_CASE("attributes are for variables, not for zeros") {
  const std::string message = MessageOf([] {
    Lstm("lstm", Symbol::Variable("data"), {}, {{"state_lr_mult", "2"}});
  });
  CAPTURE(message);
  CHECK(Says(message, "'state' is zeros if it is not given"));
}

}  // namespace mxtrain
