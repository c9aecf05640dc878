// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineConstant(const std::string& op, Kwargs kwargs, const Values& expected,
                     const TShape& shape) {
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
  ExamineConstant("_zeros", {{"shape", "(2, 3)"}}, Values(6, 0.0), {2, 3});
  ExamineConstant("_ones", {{"shape", "(3,)"}}, Values(3, 1.0), {3});
  ExamineConstant("_full", {{"shape", "(2, 1, 2)"}, {"value", "-2.5"}}, Values(4, -2.5), {2, 1, 2});
}

TEST_CASE("constant arrays: ranges") {
  ExamineConstant("_arange", {{"start", "3"}}, {0, 1, 2}, {3});
  ExamineConstant("_arange", {{"start", "2"}, {"stop", "3.1"}, {"step", "0.5"}}, {2, 2.5, 3}, {3});
  ExamineConstant("_arange", {{"start", "2"}, {"stop", "-1"}, {"step", "-1.5"}}, {2, 0.5}, {2});
  ExamineConstant("_arange", {{"start", "1"}, {"stop", "3"}, {"repeat", "2"}}, {1, 1, 2, 2}, {4});
  ExamineConstant("_arange", {{"start", "1"}, {"stop", "1"}}, {}, {0});
  ExamineConstant("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "5"}},
                  {1, 1.25, 1.5, 1.75, 2}, {5});
  ExamineConstant("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "4"}, {"endpoint", "False"}},
                  {1, 1.25, 1.5, 1.75}, {4});
  ExamineConstant("_linspace", {{"start", "1"}, {"stop", "2"}, {"num", "1"}}, {1}, {1});
}

TEST_CASE("constant arrays: diagonals") {
  ExamineConstant("_eye", {{"N", "2"}}, {1, 0, 0, 1}, {2, 2});
  ExamineConstant("_eye", {{"N", "2"}, {"M", "3"}, {"k", "1"}}, {0, 1, 0, 0, 0, 1}, {2, 3});
  ExamineConstant("_eye", {{"N", "3"}, {"M", "2"}, {"k", "-1"}}, {0, 0, 1, 0, 0, 1}, {3, 2});
}

// Of data whose elements nobody reads, in every layout.
void ExamineLike(const std::string& op, Kwargs kwargs, const TShape& shape,
                 const std::function<double(size_t)>& element, int64_t count) {
  for (const char* dtype : {"None", "float16", "int32"}) {
    if (op != "full_like" && dtype != std::string("None")) continue;
    OperatorCase c;
    c.op = op;
    c.name = format("{} {} {}", op, shape.ToString(), dtype);
    c.kwargs = kwargs;
    if (op == "full_like") c.kwargs.emplace_back("dtype", dtype);
    c.shapes = {shape};
    c.inputs = {Uniform(-1, 1)};
    const bool whole = dtype == std::string("int32");
    c.forward = [=](const Arrays&, const Arrays&) {
      Values y;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        y.push_back(whole ? std::trunc(element(i)) : element(i));
      return Arrays{y};
    };
    c.backward = false;
    c.types = kAllFloatingTypes;
    c.tolerance = {2, "a product and a sum in double"};
    RunCase(c);
  }
}

TEST_CASE("constant arrays in the shape of another") {
  for (const TShape& shape : {TShape{2, 5, 3, 4}, TShape{0, 4}, TShape{1}}) {
    ExamineLike(
        "full_like", {{"fill_value", "1.5"}, {"ctx", "cpu(0)"}}, shape, [](size_t) { return 1.5; },
        shape.Size());
    ExamineLike(
        "_contrib_arange_like", {{"start", "-2"}, {"step", "0.5"}}, shape,
        [](size_t i) { return -2 + 0.5 * static_cast<double>(i); }, shape.Size());
  }
  ExamineLike(
      "arange_like", {{"axis", "-2"}, {"repeat", "3"}}, {4, 7, 2},
      [](size_t i) { return static_cast<double>(i / 3); }, 7);
  std::vector<DType> in = {DType::kInt64}, out = {DType::kUnknown}, aux;
  CHECK(TestRegistry().Create("full_like", {{"fill_value", "1"}})->InferType(&in, &out, &aux));
  CHECK(out[0] == DType::kInt64);
  std::vector<TShape> data = {TShape{2, 3}}, result(1), none;
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("arange_like", {{"axis", "2"}})->InferShape(&data, &result, &none),
      doctest::Contains("axis"), Error);
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
