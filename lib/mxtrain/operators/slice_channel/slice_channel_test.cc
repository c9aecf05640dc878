// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "mxtrain/base/format.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase SliceChannelCase(const TShape& shape, int parts, int dim, bool squeeze) {
  OperatorCase c;
  c.name = format("SliceChannel of {} into {} along {}", shape.ToString(), parts, dim);
  c.op = "SliceChannel";
  c.kwargs = {{"num_outputs", format("{}", parts)},
              {"axis", format("{}", dim)},
              {"squeeze_axis", squeeze ? "True" : "False"}};
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  const int axis = dim < 0 ? dim + shape.ndim() : dim;
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int64_t outer = shape.Product(0, axis), run = shape.Product(axis, shape.ndim()) / parts;
    Arrays out(static_cast<size_t>(parts));
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < parts; ++p) {
        const auto begin = in[0].begin() + (o * parts + p) * run;
        out[p].insert(out[p].end(), begin, begin + run);
      }
    }
    return out;
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  return c;
}

TEST_CASE("SliceChannel") {
  RunCase(SliceChannelCase({3, 6}, 3, 1, false));
  RunCase(SliceChannelCase({3, 6}, 1, 1, false));
  RunCase(SliceChannelCase({4, 6}, 2, 0, false));
  RunCase(SliceChannelCase({2, 8, 3, 5}, 4, 1, false));
  RunCase(SliceChannelCase({2, 3, 4}, 4, -1, true));
  RunCase(SliceChannelCase({2, 3, 4}, 3, 1, true));
  RunCase(SliceChannelCase({0, 4}, 2, 1, false));
  RunCase(
      SliceChannelCase({2, 16, 3, 5}, 2, 1, false));  // also with offered blocks of eight channels
  RunCase(SliceChannelCase({4, 8, 3, 5}, 2, 0, false));
  RunCase(SliceChannelCase({70, 3}, 3, 1, true));
}

TEST_CASE("SliceChannel: shapes and names") {
  const Kwargs kwargs = {{"num_outputs", "2"}};
  const auto property = TestRegistry().Create("split", kwargs);
  CHECK(property->ListOutputs() == std::vector<std::string>{"output0", "output1"});
  std::vector<TShape> in = {TShape{-1, 6}}, out = {TShape{}, TShape{4, 3}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 6});
  CHECK(out[0] == TShape{4, 3});
  in = {TShape{4, 5}}, out = {TShape{}, TShape{}};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("cannot be split into 2 equal parts"), Error);

  const auto squeeze =
      TestRegistry().Create("split", {{"num_outputs", "2"}, {"squeeze_axis", "1"}});
  in = {TShape{}}, out = {TShape{7, 3}, TShape{}};
  CHECK(squeeze->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{7, 2, 3});
  in = {TShape{4, 6}}, out = {TShape{}, TShape{}};
  CHECK_THROWS_WITH_AS(squeeze->InferShape(&in, &out, &aux),
                       doctest::Contains("must be num_outputs = 2"), Error);
}

}  // namespace
}  // namespace mxtrain::test
