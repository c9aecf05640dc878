// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Both directions of the definition; `depth` is [N, C, H, W].
void ExamineDepthToSpace(const TShape& depth, int64_t b) {
  const TShape space = {depth[0], depth[1] / (b * b), depth[2] * b, depth[3] * b};
  // The place in `depth` of each element of `space`, in order.
  std::vector<size_t> places;
  for (int64_t n = 0; n < space[0]; ++n) {
    for (int64_t c = 0; c < space[1]; ++c) {
      for (int64_t y = 0; y < space[2]; ++y) {
        for (int64_t x = 0; x < space[3]; ++x) {
          const int64_t channel = (y % b * b + x % b) * space[1] + c;
          places.push_back(static_cast<size_t>(
              ((n * depth[1] + channel) * depth[2] + y / b) * depth[3] + x / b));
        }
      }
    }
  }
  OperatorCase c;
  c.kwargs = {{"block_size", format("{}", b)}};
  c.inputs = {Uniform(-2, 2)};
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"ref"};

  c.op = "depth_to_space";
  c.name = format("{} of {}", c.op, depth.ToString());
  c.shapes = {depth};
  c.forward = [places](const Arrays& in, const Arrays&) {
    Values y;
    for (const size_t place : places) y.push_back(in[0][place]);
    return Arrays{y};
  };
  if (depth.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);

  c.op = "space_to_depth";
  c.name = format("{} of {}", c.op, space.ToString());
  c.shapes = {space};
  c.forward = [places](const Arrays& in, const Arrays&) {
    Values y(places.size());
    for (size_t i = 0; i < places.size(); ++i) y[places[i]] = in[0][i];
    return Arrays{y};
  };
  if (depth.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  RunCase(c);
}

TEST_CASE("depth_to_space and space_to_depth") {
  ExamineDepthToSpace({2, 12, 3, 5}, 2);
  ExamineDepthToSpace({1, 9, 1, 2}, 3);
  ExamineDepthToSpace({2, 3, 4, 5}, 1);
  ExamineDepthToSpace({0, 4, 2, 2}, 2);
  ExamineDepthToSpace({3, 16, 29, 31}, 2);  // several threads
}

TEST_CASE("depth_to_space and space_to_depth: shapes") {
  const auto infer = [](const char* op, const char* size, const TShape& shape) {
    std::vector<TShape> in = {shape}, out(1), aux;
    TestRegistry().Create(op, {{"block_size", size}})->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer("depth_to_space", "2", {1, 8, 3, 5}) == TShape{1, 2, 6, 10});
  CHECK(infer("space_to_depth", "2", {1, 2, 6, 10}) == TShape{1, 8, 3, 5});
  CHECK_THROWS_WITH(infer("depth_to_space", "2", {1, 6, 3, 5}),
                    "depth_to_space: the channels of data of shape [1, 6, 3, 5] are not a multiple "
                    "of block_size^2 = 4");
  CHECK_THROWS_WITH(infer("space_to_depth", "2", {1, 6, 3, 4}),
                    "space_to_depth: height and width of data of shape [1, 6, 3, 4] are not "
                    "multiples of block_size = 2");
  CHECK_THROWS_WITH(infer("space_to_depth", "2", {6, 3, 4}),
                    "space_to_depth: data has shape [6, 3, 4], but images have 4 axes, [N, C, H, "
                    "W]");
  CHECK_THROWS_WITH(infer("depth_to_space", "0", {1, 4, 1, 1}), doctest::Contains("out of range"));
}

}  // namespace
}  // namespace mxtrain::test
