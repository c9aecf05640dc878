// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// `like`: the second input, if it has a rank. y, x: where the window begins.
void ExamineCrop(Kwargs kwargs, const TShape& data, const TShape& like, const TShape& size,
                 int64_t y, int64_t x) {
  OperatorCase c;
  c.op = "Crop";
  c.shapes = {data};
  if (like.has_rank()) c.shapes.push_back(like);
  kwargs.emplace_back("num_args", format("{}", c.shapes.size()));
  c.name = format("Crop of {} to {}", data.ToString(), size.ToString());
  c.kwargs = kwargs;
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t image = 0; image < data[0] * data[1]; ++image) {
      for (int64_t i = 0; i < size[0]; ++i) {
        for (int64_t j = 0; j < size[1]; ++j)
          out.push_back(in[0][static_cast<size_t>((image * data[2] + y + i) * data[3] + x + j)]);
      }
    }
    return Arrays{out};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy; the gradient of the second input is zero"};
  c.must_accept = {"ref"};
  RunCase(c);
}

TEST_CASE("Crop") {
  const TShape none;
  ExamineCrop({{"h_w", "(3, 2)"}}, {2, 3, 5, 4}, none, {3, 2}, 0, 0);
  ExamineCrop({{"h_w", "(3, 2)"}, {"offset", "(2, 1)"}}, {2, 3, 5, 4}, none, {3, 2}, 2, 1);
  ExamineCrop({{"h_w", "(2, 3)"}, {"center_crop", "True"}}, {1, 2, 5, 6}, none, {2, 3}, 1, 1);
  ExamineCrop({{"h_w", "(5, 4)"}}, {2, 1, 5, 4}, none, {5, 4}, 0, 0);
  ExamineCrop({}, {2, 3, 5, 4}, {1, 7, 4, 4}, {4, 4}, 0, 0);
  ExamineCrop({{"offset", "(1, 2)"}}, {2, 3, 5, 4}, {2, 3, 4, 1}, {4, 1}, 1, 2);
  ExamineCrop({{"center_crop", "1"}}, {2, 3, 5, 4}, {2, 3, 2, 2}, {2, 2}, 1, 1);
  ExamineCrop({{"h_w", "(1, 1)"}}, {0, 3, 5, 4}, none, {1, 1}, 0, 0);
}

TEST_CASE("Crop: windows that do not fit") {
  const auto infer = [](Kwargs kwargs, std::vector<TShape> in) {
    kwargs.emplace_back("num_args", format("{}", in.size()));
    std::vector<TShape> out(1), aux;
    TestRegistry().Create("Crop", kwargs)->InferShape(&in, &out, &aux);
  };
  const TShape images = {2, 3, 5, 4};
  CHECK_THROWS_WITH(infer({}, {images}), "Crop: h_w = (0, 0) must be two numbers, each at least 1");
  CHECK_THROWS_WITH(infer({{"h_w", "(2, 2)"}, {"offset", "(-1, 0)"}}, {images}),
                    "Crop: offset = (-1, 0) must be two numbers, each at least 0");
  CHECK_THROWS_WITH(infer({{"h_w", "(2, 2)"}, {"offset", "(0, 3)"}}, {images}),
                    "Crop: 2 columns from column 3 on exceed images of shape [2, 3, 5, 4]");
  CHECK_THROWS_WITH(infer({{"h_w", "(6, 2)"}, {"center_crop", "1"}}, {images}),
                    doctest::Contains("6 rows from row 0 on exceed images"));
  CHECK_THROWS_WITH(infer({}, {images, {4, 4}}),
                    "Crop: arg1 has shape [4, 4], but images have 4 axes, [N, C, H, W]");
}

}  // namespace
}  // namespace mxtrain::test
