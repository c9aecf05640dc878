// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// By angles.
Arrays ArcFace(const Arrays& in, int64_t samples, int64_t features, int64_t classes, double margin,
               double scale) {
  Arrays out(2);
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t k = 0; k < classes; ++k) {
      double product = 0, x2 = 0, w2 = 0;
      for (int64_t d = 0; d < features; ++d) {
        const double x = in[0][static_cast<size_t>(n * features + d)],
                     w = in[1][static_cast<size_t>(k * features + d)];
        product += x * w, x2 += x * x, w2 += w * w;
      }
      const double cosine = product / std::sqrt(x2 * w2), angle = std::acos(cosine);
      const bool own = static_cast<int64_t>(std::lround(in[2][static_cast<size_t>(n)])) == k;
      const double moved = angle < std::acos(-1.0) - margin ? std::cos(angle + margin)
                                                            : cosine - margin * std::sin(margin);
      out[0].push_back(scale * (own ? moved : cosine));
      out[1].push_back(scale * cosine);
    }
  }
  return out;
}

TEST_CASE("ArcFace by angles") {
  for (const double margin : {0.5, 1.2}) {
    OperatorCase c;
    c.op = "ArcFace";
    c.name = format("ArcFace {}", margin);
    c.kwargs = {{"num_hidden", "4"}, {"margin", format("{}", margin)}, {"scale", "3"}};
    c.shapes = {{6, 5}, {4, 5}, {6}};
    c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Labels(4)};
    c.forward = [margin](const Arrays& in, const Arrays&) {
      return ArcFace(in, 6, 5, 4, margin, 3);
    };
    c.tolerance = {128, "cosines of unit vectors, and roots"};
    RunCase(c);
  }
  const auto property = TestRegistry().Create("ArcFace", {{"num_hidden", "4"}});
  CHECK(!property->HasGradient(2));
  std::vector<TShape> in = {TShape{2, 3, 1}, TShape(), TShape()}, out(2), aux;
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux),
                    "ArcFace: data has shape [2, 3, 1]; expected [N, features]");
}

}  // namespace
}  // namespace mxtrain::test
