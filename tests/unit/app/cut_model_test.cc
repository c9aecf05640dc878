// SPDX-License-Identifier: Apache-2.0
#include "app/inference/cut_model.h"

#include <doctest/doctest.h>

#include "mxtrain/operator/registry.h"
#include "tests/support/error_message.h"

namespace mxtrain::inference {
namespace {

using Names = std::vector<std::string>;

struct Fixture {
  std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  const Logger log;
  Symbol x = Symbol::Variable("x"), y = Symbol::Variable("y");
  Symbol prediction = Layer("FullyConnected", "prediction", {x}, {{"num_hidden", "3"}});
  Symbol error = Layer("elemwise_sub", "error", {prediction, y});
  Symbol loss = Layer("MakeLoss", "loss", {error});

  Symbol Layer(const std::string& op, const std::string& name, const std::vector<Symbol>& inputs,
               const Kwargs& kwargs = {}) const {
    return Symbol::Create(*registry, op, name, kwargs, inputs);
  }
  // Of a run with two inputs and two labels.
  static Model ModelOf(const Symbol& symbol) {
    Model model;
    model.file = "best";
    model.symbol = symbol;
    for (const char* input : {"x", "other"})
      model.info.inputs.push_back({input, TShape{4}, DType::kFloat32});
    for (const char* label : {"y", "softmax_label"})
      model.info.labels.push_back({label, TShape{3}, DType::kFloat32});
    return model;
  }
};

TEST_CASE_FIXTURE(Fixture, "outputs that depend on a label are removed, and inputs nobody needs") {
  Model model = ModelOf(Symbol::Group(std::vector{
      loss, Layer("BlockGrad", "fitted", {prediction}), Layer("BlockGrad", "miss", {error}),
      Layer("SoftmaxOutput", "softmax", {prediction})}));
  RemoveLabels(*registry, &model, log);
  CHECK(model.symbol.ListOutputs() == Names{"fitted_output", "softmax_output"});
  CHECK(model.symbol.ListArguments() ==
        Names{"x", "prediction_weight", "prediction_bias", "softmax_label"});
  REQUIRE(model.info.inputs.size() == 1);
  CHECK(model.info.inputs[0].name == "x");
}

TEST_CASE_FIXTURE(Fixture,
                  "a label that the net computes, and its layers and inputs, are not needed") {
  const Symbol other = Symbol::Variable("other");
  const Symbol target = Layer("FullyConnected", "target", {other}, {{"num_hidden", "3"}});
  const Symbol both = Layer("elemwise_add", "both", {target, y});
  const Symbol fitted = Layer("LinearRegressionOutput", "fitted", {prediction, both});
  Model model = ModelOf(Symbol::Group(std::vector{fitted, Layer("BlockGrad", "copy", {fitted})}));
  RemoveLabels(*registry, &model, log);
  CHECK(model.symbol.ListOutputs() == Names{"fitted_output", "copy_output"});
  CHECK(model.symbol.ListArguments() ==
        Names{"x", "prediction_weight", "prediction_bias", "fitted_label"});
  CHECK(model.info.inputs.size() == 1);
  CHECK(model.symbol.InferShape({{"x", TShape{2, 4}}}).outputs[0] == TShape{2, 3});
}

TEST_CASE_FIXTURE(Fixture, "a net of which nothing is left is refused") {
  Model model = ModelOf(loss);
  CHECK(test::MessageOf([&] { RemoveLabels(*registry, &model, log); })
            .starts_with("best: 'loss' depends on the label 'y', and predictions are made without "
                         "labels; "));
  model = ModelOf(LayerOf(loss, "prediction_weight"));
  CHECK(test::MessageOf([&] { RemoveLabels(*registry, &model, log); }) ==
        "best: 'prediction_weight' depends on no input");
}

TEST_CASE_FIXTURE(Fixture, "a net ends at a layer, which the name of its output names too") {
  for (const char* name : {"prediction", "prediction_output"})
    CHECK(LayerOf(loss, name).ListArguments() ==
          Names{"x", "prediction_weight", "prediction_bias"});
  CHECK(test::MessageOf([&] { LayerOf(loss, "predictoin"); }) ==
        "the model has no layer 'predictoin'; did you mean 'prediction'?");
}

}  // namespace
}  // namespace mxtrain::inference
