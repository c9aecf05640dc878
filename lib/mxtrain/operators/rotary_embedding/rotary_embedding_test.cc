// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

struct Rotation {
  TShape shape;
  int64_t turned = 0;  // 0: the whole depth
  bool interleaved = false, placed = false;
  double base = 10000;
};

// As products of complex numbers.
Values Rotated(const Rotation& f, const Arrays& in) {
  const int n = f.shape.ndim();
  const int64_t tokens = f.shape[n - 2], depth = f.shape[n - 1],
                turned = f.turned == 0 ? depth : f.turned, half = turned / 2;
  const int64_t rows_of_example = f.shape.Product(1, n - 1);
  Values y = in[0];
  for (int64_t row = 0; row < f.shape.Product(0, n - 1); ++row) {
    const double first =
        f.placed ? std::trunc(in[1][static_cast<size_t>(row / rows_of_example)]) : 0;
    for (int64_t i = 0; i < half; ++i) {
      const double angle =
          (first + static_cast<double>(row % tokens)) /
          std::pow(f.base, 2.0 * static_cast<double>(i) / static_cast<double>(turned));
      const int64_t at = row * depth;
      double& real = y[static_cast<size_t>(at + (f.interleaved ? 2 * i : i))];
      double& imaginary = y[static_cast<size_t>(at + (f.interleaved ? 2 * i + 1 : i + half))];
      const double a = real, b = imaginary;
      real = a * std::cos(angle) - b * std::sin(angle);
      imaginary = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return y;
}

OperatorCase RotaryCase(const Rotation& f) {
  OperatorCase c;
  c.op = "rotary_embedding";
  c.name = format("rotary_embedding {}", f.shape.ToString());
  c.shapes = {f.shape};
  c.inputs = {Uniform(-2, 2)};
  if (f.turned != 0) c.kwargs.emplace_back("rotary_dim", params::Print(f.turned));
  if (f.interleaved) c.kwargs.emplace_back("interleaved", "True"), c.name += " interleaved";
  if (f.base != 10000) c.kwargs.emplace_back("base", params::Print(f.base));
  if (f.placed) {
    c.kwargs.emplace_back("use_position", "True");
    c.name += " placed";
    c.shapes.push_back({f.shape[0]});
    c.inputs.push_back(Cycle({5, 0, 100, 3}));
  }
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Rotated(f, in)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {8, "two products and a sum, of cosines rounded to float32"};
  return c;
}

TEST_CASE("rotary_embedding by its definition") {
  RunCase(RotaryCase({{2, 3, 5, 8}}));
  RunCase(RotaryCase({{2, 3, 5, 8}, 0, true}));
  RunCase(RotaryCase({{3, 2, 4, 7}, 4}));
  RunCase(RotaryCase({{3, 2, 4, 7}, 6, true}));
  RunCase(RotaryCase({{3, 2, 4, 6}, 0, false, true}));
  RunCase(RotaryCase({{4, 1, 3, 5}, 2, true, true, 500}));
  RunCase(RotaryCase({{2, 7, 64}, 0, false, false, 1e6}));
  RunCase(RotaryCase({{1, 2, 2, 3, 2}}));
  RunCase(RotaryCase({{1, 1, 1, 2}}));
  RunCase(RotaryCase({{0, 2, 3, 4}}));
  RunCase(RotaryCase({{2, 2, 0, 4}, 0, false, true}));
}

TEST_CASE("rotary_embedding: positions of whole numbers") {
  OperatorCase c = RotaryCase({{2, 2, 3, 4}, 0, false, true});
  c.input_types = {DType::kUnknown, DType::kInt64};
  RunCase(c);
}

// Depth 4 at position 3: the angles are 3 and 0.03.
TEST_CASE("rotary_embedding as Llama turns a query") {
  const std::unique_ptr<Runtime> runtime = NewRuntime();
  const std::vector<NDArray> in = {NDArray::FromVector(*runtime, {1, 1, 4}, {1, 2, 3, 4}),
                                   NDArray::FromVector(*runtime, {1}, {3})};
  const std::vector<float> y =
      Invoke("rotary_embedding", in, {{"use_position", "True"}})[0].ToVector();
  // 1 cos 3 - 3 sin 3, 2 cos 0.03 - 4 sin 0.03, 1 sin 3 + 3 cos 3, 2 sin 0.03 + 4 cos 0.03
  const std::vector<float> wanted = {-1.4133525F, 1.8791181F, -2.8288574F, 4.0581913F};
  for (size_t i = 0; i < 4; ++i) CHECK(y[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
}

TEST_CASE("rotary_embedding: errors name the shapes") {
  const auto infer = [](const Kwargs& kwargs, const TShape& data) {
    const auto property = TestRegistry().Create("rotary_embedding", kwargs);
    std::vector<TShape> in(property->ListArguments().size()), out(1), aux;
    in[0] = data;
    property->InferShape(&in, &out, &aux);
  };
  CHECK(MessageOf([&] {
          infer({}, {2, 8});
        }) ==
        "rotary_embedding: data has shape [2, 8]; expected three axes or more, [batch, ..., "
        "tokens, depth]");
  CHECK(MessageOf([&] {
          infer({}, {2, 4, 5});
        }) ==
        "rotary_embedding: 5 elements of 5 cannot be turned in pairs; rotary_dim must be even and "
        "at most the depth (last axis) of the data [2, 4, 5]");
  CHECK_THROWS_WITH(infer({{"rotary_dim", "6"}}, {2, 4, 4}),
                    doctest::Contains("6 elements of 4 cannot be turned"));
}

}  // namespace
}  // namespace mxtrain::test
