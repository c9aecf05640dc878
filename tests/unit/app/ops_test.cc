// SPDX-License-Identifier: Apache-2.0
#include "app/commands/ops.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "app/commands/operator_arrays.h"
#include "app/session/open_runtime.h"

namespace mxtrain::test {
namespace {

using Strings = std::vector<std::string>;

const OperatorRegistry& Registry() {
  static const std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  return *registry;
}

bool Prints(const std::string& name, const std::string& part) {
  const std::string text = commands::TextOfOperator(Registry(), name);
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("the reference of an operator names its arrays") {
  CHECK(Prints("FullyConnected",
               "\nInputs: data, weight, bias\n  with no_bias = True: data, weight\n"
               "Outputs: output\n"));
  CHECK(Prints("BatchNorm", "\nAuxiliary states: moving_mean, moving_var\n"));
  CHECK(Prints("LeakyReLU", "  with act_type = prelu: data, gamma\n"));
  CHECK(Prints("BilinearResize2D", "Inputs: data\n  with mode = like: data, like\n"));
  CHECK(Prints("Concat", "\nInputs: arg0, arg1, ... (num_args says how many)\n"));
  CHECK(Prints("SliceChannel", "\nOutputs: output0, output1, ... (num_outputs says how many)\n"));
  CHECK(Prints("Crop", "\nInputs: arg0\n  with num_args = 2: arg0, arg1\nOutputs: output\n"));
  CHECK(Prints("GroupNorm", "\nInputs: data, gamma, beta\nOutputs: output\n"));
}

TEST_CASE("the arrays of a composite and its way of computing") {
  CHECK(Prints("L2Normalization", "\nComputed as a graph of other operators.\n"));
  CHECK(!Prints("L2Normalization", "CPU kernels"));
  CHECK(Prints("FullyConnected", "\nCPU kernels, best first: "));
}

TEST_CASE("the arrays in JSON") {
  const Json batch_norm = commands::JsonOfOperator(Registry(), "BatchNorm");
  CHECK(batch_norm["arguments"] == Json(Strings{"data", "gamma", "beta"}));
  CHECK(batch_norm["auxiliary_states"] == Json(Strings{"moving_mean", "moving_var"}));
  const Json fully_connected = commands::JsonOfOperator(Registry(), "FullyConnected");
  CHECK(fully_connected["outputs"] == Json(Strings{"output"}));
  REQUIRE(fully_connected["variants"].size() == 1);
  CHECK(fully_connected["variants"][0]["parameter"] == "no_bias");
  CHECK(fully_connected["variants"][0]["arguments"] == Json(Strings{"data", "weight"}));
  CHECK(fully_connected["variants"][0]["is_count"] == false);
  CHECK(commands::JsonOfOperator(Registry(), "Concat")["variants"][0]["is_count"] == true);
}

TEST_CASE("operators that nets use are listed, and none that only passes put into graphs") {
  const Strings listed = session::PublicOperators(Registry());
  const auto is_listed = [&listed](const char* name) {
    return std::ranges::find(listed, name) != listed.end();
  };
  for (const char* name : {"Convolution", "_mul_scalar", "_plus_scalar", "_arange",
                           "_greater_equal_scalar", "_power_scalar"})
    CHECK_MESSAGE(is_listed(name), name);
  for (const char* name : {"_ElementwiseChain", "_BatchNormActivation", "_loss_scale_update"}) {
    CHECK_MESSAGE(Registry().Has(name), name);
    CHECK_FALSE_MESSAGE(is_listed(name), name);
  }
  CHECK(commands::JsonOfOperator(Registry(), "_mul_scalar")["group"] == "elementwise functions");
}

TEST_CASE("the arrays of every operator can be described") {
  for (const std::string& name : session::PublicOperators(Registry())) {
    CAPTURE(name);
    const commands::ArraysReference reference = commands::DescribeArrays(Registry(), name);
    CHECK(!(reference.base.arguments.empty() && reference.base.outputs.empty()));
  }
}

}  // namespace
}  // namespace mxtrain::test
