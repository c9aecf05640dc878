// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// `padding` < 0: none.
OperatorCase BagCase(const TShape& data, const Generator& words, int64_t input, int64_t output,
                     int64_t padding) {
  OperatorCase c;
  c.name =
      format("EmbeddingBag of {} in [{}, {}], padding {}", data.ToString(), input, output, padding);
  c.op = "EmbeddingBag";
  c.kwargs = {{"input_dim", std::to_string(input)},
              {"output_dim", std::to_string(output)},
              {"padding", std::to_string(padding)}};
  c.shapes = {data, TShape{input, output}};
  c.inputs = {words, Uniform(-1, 1)};
  const auto length = static_cast<size_t>(data[1]), width = static_cast<size_t>(output);
  const auto is_real = [padding](double word) {
    return padding < 0 || word != static_cast<double>(padding);
  };
  const auto row_of = [input](double word) {
    return static_cast<size_t>(std::clamp(word, 0.0, static_cast<double>(input - 1)));
  };
  const auto number = [=](const Values& in, size_t n) {
    double count = 0;
    for (size_t j = 0; j < length; ++j) count += is_real(in[n * length + j]);
    return std::max(count, 1.0);
  };
  c.forward = [=](const Arrays& in, const Arrays&) {
    const auto texts = in[0].size() / std::max<size_t>(length, 1);
    Values y(texts * width);
    for (size_t i = 0; i < in[0].size(); ++i) {
      if (!is_real(in[0][i])) continue;
      for (size_t k = 0; k < width; ++k)
        y[i / length * width + k] +=
            in[1][row_of(in[0][i]) * width + k] / number(in[0], i / length);
    }
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g(in[1].size());
    for (size_t i = 0; i < in[0].size(); ++i) {
      if (!is_real(in[0][i])) continue;
      for (size_t k = 0; k < width; ++k)
        g[row_of(in[0][i]) * width + k] +=
            head[0][i / length * width + k] / number(in[0], i / length);
    }
    return Arrays{{}, g};
  };
  c.tolerance = {128, "sums of up to some hundreds of numbers"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("EmbeddingBag") {
  for (const int64_t padding : {-1, 3}) {
    OperatorCase c = BagCase({3, 5}, Labels(4), 4, 7, padding);
    c.types = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16};
    for (const DType words : {DType::kFloat32, DType::kInt32, DType::kInt64}) {
      c.input_types = {words};
      for (const DType type : c.types) {
        OperatorCase of_type = c;
        of_type.name += format(", {} and {}", NameOf(words), NameOf(type));
        of_type.types = {type};
        of_type.input_types = {words, type};
        RunCase(of_type);
      }
    }
  }
  // Several threads and blocks of columns; a text of padding alone.
  OperatorCase wide = BagCase({90, 33}, Labels(50), 50, 261, 49);
  wide.types = {DType::kFloat32};
  wide.input_types = {DType::kFloat32, DType::kFloat32};
  RunCase(wide);
  OperatorCase empty = BagCase({2, 3}, Cycle({9, 9, 9, 0, 9, 1}), 10, 4, 9);
  empty.types = {DType::kFloat32};
  empty.input_types = {DType::kFloat32, DType::kFloat32};
  RunCase(empty);
  OperatorCase outside = BagCase({2, 3}, Cycle({-7, 5, 4, 3}), 4, 3, -1);
  outside.types = {DType::kFloat32};
  outside.input_types = {DType::kInt32, DType::kFloat32};
  RunCase(outside);
}

TEST_CASE("EmbeddingBag: shapes and refusals") {
  const auto property =
      TestRegistry().Create("EmbeddingBag", {{"input_dim", "10"}, {"output_dim", "4"}});
  std::vector<TShape> in = {TShape{2, 6}, TShape{}}, out = {TShape{}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{10, 4});
  CHECK(out[0] == TShape{2, 4});
  in = {TShape{2, 6, 1}, TShape{}}, out = {TShape{}};
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux), doctest::Contains("[N, length]"));
  in = {TShape{2, 6}, TShape{10, 3}}, out = {TShape{}};
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux),
                    "EmbeddingBag: weight has shape [10, 3], but [10, 4] was expected");
  CHECK(!property->HasGradient(0));
}

}  // namespace
}  // namespace mxtrain::test
