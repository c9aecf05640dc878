// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The row of a word: truncated, and clipped to [0, words).
size_t RowOf(double word, int64_t words) {
  if (!(word >= 0)) return 0;
  return static_cast<size_t>(std::min(std::floor(word), static_cast<double>(words - 1)));
}

OperatorCase EmbeddingCase(const TShape& data, const Generator& words, int64_t input,
                           int64_t output) {
  OperatorCase c;
  c.name = format("Embedding of {} in [{}, {}]", data.ToString(), input, output);
  c.op = "Embedding";
  c.kwargs = {{"input_dim", std::to_string(input)}, {"output_dim", std::to_string(output)}};
  c.shapes = {data, TShape{input, output}};
  c.inputs = {words, Uniform(0, 9)};
  const auto length = static_cast<size_t>(output);
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (const double word : in[0]) {
      for (size_t k = 0; k < length; ++k) y.push_back(in[1][RowOf(word, input) * length + k]);
    }
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g(in[1].size());
    for (size_t i = 0; i < in[0].size(); ++i) {
      for (size_t k = 0; k < length; ++k)
        g[RowOf(in[0][i], input) * length + k] += head[0][i * length + k];
    }
    return Arrays{{}, g};
  };
  c.tolerance = {64, "sums of up to some dozens of numbers"};
  c.must_accept = {"ref"};
  return c;
}

void RunEmbedding(OperatorCase c, DType words, DType weight) {
  c.name += format(", {} and {}", NameOf(words), NameOf(weight));
  c.types = {weight};
  c.input_types = {words, weight};
  RunCase(c);
}

TEST_CASE("Embedding") {
  const OperatorCase small = EmbeddingCase({3, 5}, Labels(4), 4, 7);
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                           DType::kUint8, DType::kInt32, DType::kInt64}) {
    RunEmbedding(small, DType::kFloat32, type);
    RunEmbedding(small, type, DType::kFloat32);
  }
  RunEmbedding(EmbeddingCase({6}, Labels(300), 300, 1), DType::kInt32, DType::kFloat32);
  RunEmbedding(EmbeddingCase({1, 1, 2}, Labels(1), 1, 40), DType::kInt64, DType::kFloat32);
  RunEmbedding(EmbeddingCase({2, 0}, Labels(3), 3, 4), DType::kInt32, DType::kFloat32);
  // Several threads, and pages of rows.
  RunEmbedding(EmbeddingCase({70, 9}, Labels(300), 300, 261), DType::kInt32, DType::kFloat32);
}

TEST_CASE("Embedding: words out of range take the nearest row") {
  const double nan = std::nan("");
  const OperatorCase c =
      EmbeddingCase({8}, Cycle({2.9, -1, 100, nan, 3, -0.5, HUGE_VAL, -HUGE_VAL}), 4, 3);
  RunEmbedding(c, DType::kFloat32, DType::kFloat32);
  RunEmbedding(c, DType::kBfloat16, DType::kFloat64);
  RunEmbedding(EmbeddingCase({4}, Cycle({-7, 5, 4, 3}), 4, 3), DType::kInt32, DType::kFloat32);
}

TEST_CASE("Embedding: shapes, types and refusals") {
  const Kwargs kwargs = {{"input_dim", "10"}, {"output_dim", "4"}};
  const auto property = TestRegistry().Create("Embedding", kwargs);
  std::vector<TShape> in = {TShape{2, -1}, TShape{}}, out = {TShape{-1, 3, -1}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in == std::vector{TShape{2, 3}, TShape{10, 4}});
  CHECK(out[0] == TShape{2, 3, 4});
  in = {TShape{}, TShape{}}, out = {TShape{5, 4}};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{5});
  in = {TShape{5}, TShape{10, 3}}, out = {TShape{}};
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux),
                    "Embedding: weight has shape [10, 3], but [10, 4] was expected");
  in = {TShape{1, 1, 1, 1, 1, 1, 1, 1}, TShape{}}, out = {TShape{}};
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux),
                    doctest::Contains("at most 7 axes are supported"));

  std::vector<DType> in_types = {DType::kInt32, DType::kUnknown}, out_types(1, DType::kUnknown),
                     aux_types;
  CHECK(property->InferType(&in_types, &out_types, &aux_types));
  CHECK(in_types[1] == DType::kFloat32);
  CHECK(out_types[0] == DType::kFloat32);
  in_types = {DType::kInt32, DType::kBfloat16}, out_types = {DType::kUnknown};
  CHECK(property->InferType(&in_types, &out_types, &aux_types));
  CHECK(out_types[0] == DType::kBfloat16);

  CHECK(!property->HasGradient(0));
}

}  // namespace
}  // namespace mxtrain::test
