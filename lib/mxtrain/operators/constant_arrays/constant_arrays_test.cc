// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void Examine(const std::string& op, Kwargs kwargs, const Values& expected, const TShape& shape) {
  for (const char* dtype : {"float32", "float64", "bfloat16", "int32"}) {
    OperatorCase c;
    c.op = op;
    c.name = format("{} {} {}", op, shape.ToString(), dtype);
    c.kwargs = kwargs;
    c.kwargs.emplace_back("dtype", dtype);
    c.inputs = {Constant(0)};
    c.types = {DType::kFloat32};
    const bool whole = dtype == std::string("int32");
    c.forward = [=](const Arrays&, const Arrays&) {
      return Arrays{Apply(expected, [=](double x) { return whole ? std::trunc(x) : x; })};
    };
    c.backward = false;
    c.tolerance = {2, "a product and a sum in double"};
    RunCase(c);
    std::vector<TShape> in, out(1), aux;
    CHECK(TestRegistry().Create(op, c.kwargs)->InferShape(&in, &out, &aux));
    CHECK(out[0] == shape);
  }
}

TEST_CASE("constant arrays: one value") {
  Examine("_zeros", {{"shape", "(2, 3)"}}, Values(6, 0.0), {2, 3});
  Examine("_ones", {{"shape", "(3,)"}}, Values(3, 1.0), {3});
  Examine("_full", {{"shape", "(2, 1, 2)"}, {"value", "-2.5"}}, Values(4, -2.5), {2, 1, 2});
}

TEST_CASE("constant arrays: ranges") {
  Examine("_arange", {{"start", "3"}}, {0, 1, 2}, {3});
  Examine("_arange", {{"start", "2"}, {"stop", "3.1"}, {"step", "0.5"}}, {2, 2.5, 3}, {3});
  Examine("_arange", {{"start", "2"}, {"stop", "-1"}, {"step", "-1.5"}}, {2, 0.5}, {2});
  Examine("_arange", {{"start", "1"}, {"stop", "3"}, {"repeat", "2"}}, {1, 1, 2, 2}, {4});
  Examine("_arange", {{"start", "1"}, {"stop", "1"}}, {}, {0});
  Examine("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "5"}}, {1, 1.25, 1.5, 1.75, 2}, {5});
  Examine("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "4"}, {"endpoint", "False"}},
          {1, 1.25, 1.5, 1.75}, {4});
  Examine("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "1"}}, {1}, {1});
}

TEST_CASE("constant arrays: diagonals") {
  Examine("_eye", {{"N", "2"}}, {1, 0, 0, 1}, {2, 2});
  Examine("_eye", {{"N", "2"}, {"M", "3"}, {"k", "1"}}, {0, 1, 0, 0, 0, 1}, {2, 3});
  Examine("_eye", {{"N", "3"}, {"M", "2"}, {"k", "-1"}}, {0, 0, 1, 0, 0, 1}, {3, 2});
}

TEST_CASE("constant arrays: shapes that follow from readers, and errors") {
  std::vector<TShape> in, out = {TShape{4, 5}}, aux;
  CHECK(TestRegistry().Create("_zeros", {})->InferShape(&in, &out, &aux));
  out = {TShape()};
  CHECK(!TestRegistry().Create("_zeros", {})->InferShape(&in, &out, &aux));
  for (const char* op : {"_zeros", "_ones"}) {  // 0 is unknown
    const auto some = TestRegistry().Create(op, {{"shape", "(0, 5)"}});
    out = {TShape{4, 5}};
    CHECK(some->InferShape(&in, &out, &aux));
    CHECK(out[0] == TShape{4, 5});
    out = {TShape()};
    CHECK(!some->InferShape(&in, &out, &aux));
    out = {TShape{4, 6}};
    CHECK_THROWS_WITH(some->InferShape(&in, &out, &aux), doctest::Contains("was expected"));
  }
  CHECK_THROWS_AS(TestRegistry().Create("_eye", {{"N", "2"}, {"k", "9223372036854775807"}}), Error);
  out = {TShape{7}};
  const Kwargs inferred = {{"start", "1"}, {"infer_range", "True"}};
  CHECK(TestRegistry().Create("_arange", inferred)->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{7});
  CHECK_THROWS_WITH(TestRegistry().Create("_arange", {{"start", "3"}, {"step", "0"}}),
                    "_arange: step must not be 0");
  CHECK_THROWS_WITH(TestRegistry()
                        .Create("_arange", {{"start", "0"}, {"stop", "1e20"}})
                        ->InferShape(&in, &out, &aux),
                    doctest::Contains("are too many numbers"));
}

}  // namespace
}  // namespace mxtrain::test
