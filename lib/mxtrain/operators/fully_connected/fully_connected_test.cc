// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/device/cpu/onednn/version.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunFullyConnected(const std::string& name, const TShape& data, int64_t inputs, int64_t hidden,
                       bool bias, bool flatten,
                       std::vector<std::string> must_accept = {"ref", "onednn"},
                       std::vector<DType> types = {DType::kFloat32, DType::kFloat64}) {
  OperatorCase c;
  c.name = "fully connected, " + name;
  c.op = "FullyConnected";
  c.kwargs = {{"num_hidden", std::to_string(hidden)},
              {"no_bias", bias ? "0" : "1"},
              {"flatten", flatten ? "True" : "False"}};
  c.shapes = {data, {hidden, inputs}};
  if (bias) c.shapes.push_back({hidden});
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t rows = static_cast<int64_t>(in[0].size()) / inputs;
    Values out(rows * hidden);
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t h = 0; h < hidden; ++h)
          out[r * hidden + h] += in[1][h * inputs + i] * in[0][r * inputs + i];
      }
    }
    for (size_t i = 0; bias && i < out.size(); ++i) out[i] += in[2][i % hidden];
    return Arrays{out};
  };
  const int64_t examples = data.Size() / std::max<int64_t>(inputs, 1);
  c.tolerance = {16 + static_cast<double>(inputs + examples) / 2,
                 "sums of as many products, in any order"};
  c.types = std::move(types);
  c.must_accept = std::move(must_accept);
  const bool narrow = c.types == std::vector{DType::kBfloat16};
  if (narrow && bias) c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  const CaseReport report = RunCase(c);
  if (narrow && !OneDnnVersion().empty() && WhyNoBfloat16().empty())
    CHECK(KernelRan(report, "onednn"));
}

TEST_CASE("FullyConnected: matrices") {
  RunFullyConnected("square", {16, 16}, 16, 16, true, true);
  RunFullyConnected("odd sizes", {5, 7}, 7, 11, true, true);
  RunFullyConnected("without bias", {3, 33}, 33, 9, false, true);
  RunFullyConnected("one of everything", {1, 1}, 1, 1, true, true);
  RunFullyConnected("narrow types", {3, 4}, 4, 2, true, true, {"ref"},
                    {DType::kFloat16, DType::kBfloat16});
  RunFullyConnected("no rows", {0, 4}, 4, 3, true, true, {"ref"});
}
TEST_CASE("FullyConnected: bfloat16 with a float32 bias, by oneDNN if the processor supports it") {
  RunFullyConnected("bfloat16", {16, 32}, 32, 16, true, true, {"ref"}, {DType::kBfloat16});
  RunFullyConnected("bfloat16, odd sizes", {5, 7}, 7, 11, true, true, {"ref"}, {DType::kBfloat16});
  RunFullyConnected("bfloat16, without bias", {3, 33}, 33, 9, false, true, {"ref"},
                    {DType::kBfloat16});
}
TEST_CASE("FullyConnected: images are flattened") {
  RunFullyConnected("images", {4, 10, 2, 3}, 60, 10, true, true);
}
TEST_CASE("FullyConnected: last axis only") {
  RunFullyConnected("sequences", {3, 4, 6}, 6, 5, true, false);
  RunFullyConnected("a vector", {6}, 6, 5, false, false);
}

TEST_CASE("FullyConnected: shapes are inferred in both directions") {
  const auto flat = TestRegistry().Create("FullyConnected", {{"num_hidden", "10"}});
  std::vector<TShape> in{{-1, 3, 4}, TShape(), TShape()}, out(1), aux;
  CHECK_FALSE(flat->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{10, 12});
  CHECK(in[2] == TShape{10});
  CHECK(out[0] == TShape{-1, 10});
  out[0][0] = 7;
  CHECK(flat->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{7, 3, 4});
  in = {{7, 3, 4}, {10, 13}, TShape()};
  CHECK_THROWS_WITH_AS(flat->InferShape(&in, &out, &aux), doctest::Contains("weight"), Error);

  const auto last = TestRegistry().Create(
      "FullyConnected", {{"num_hidden", "10"}, {"flatten", "0"}, {"no_bias", "1"}});
  in = {TShape(), {10, 6}};
  out = {{2, 3, 10}};
  CHECK(last->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 6});
}

}  // namespace
}  // namespace mxtrain::test
