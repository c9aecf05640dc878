// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct PriorSettings {
  Values sizes = {1}, ratios = {1}, steps = {-1, -1}, offsets = {0.5, 0.5};
  bool clip = false;
};

std::string TupleText(const Values& values) {
  std::string text = "(";
  for (const double v : values) text += format("{},", v);
  return text + ")";
}

Values PriorAnchors(const PriorSettings& prior, const TShape& data) {
  const auto rows = static_cast<double>(data[2]), columns = static_cast<double>(data[3]);
  const bool given = prior.steps[0] > 0 && prior.steps[1] > 0;
  const double step_y = given ? prior.steps[0] : 1 / rows,
               step_x = given ? prior.steps[1] : 1 / columns;
  std::vector<std::pair<double, double>> kinds;  // size and ratio
  for (const double size : prior.sizes) kinds.emplace_back(size, prior.ratios[0]);
  for (size_t k = 1; k < prior.ratios.size(); ++k)
    kinds.emplace_back(prior.sizes[0], prior.ratios[k]);
  Values out;
  for (double y = 0; y < rows; ++y) {
    for (double x = 0; x < columns; ++x) {
      for (const auto& [size, ratio] : kinds) {
        const double at_y = (y + prior.offsets[0]) * step_y, at_x = (x + prior.offsets[1]) * step_x;
        const double h = size / std::sqrt(ratio), w = size * std::sqrt(ratio) * rows / columns;
        for (double corner : {at_x - w / 2, at_y - h / 2, at_x + w / 2, at_y + h / 2})
          out.push_back(prior.clip ? std::clamp(corner, 0.0, 1.0) : corner);
      }
    }
  }
  return out;
}

void ExaminePrior(const TShape& data, const PriorSettings& prior) {
  OperatorCase c;
  c.op = "MultiBoxPrior";
  c.kwargs = {{"sizes", TupleText(prior.sizes)},
              {"ratios", TupleText(prior.ratios)},
              {"steps", TupleText(prior.steps)},
              {"offsets", TupleText(prior.offsets)},
              {"clip", prior.clip ? "True" : "False"}};
  c.name = format("MultiBoxPrior {} of sizes {}, ratios {}", data.ToString(), c.kwargs[0].second,
                  c.kwargs[1].second);
  c.shapes = {data};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays&, const Arrays&) { return Arrays{PriorAnchors(prior, data)}; };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "sums of quotients of parameters that float32 rounds"};
  RunCase(c);
}

TEST_CASE("MultiBoxPrior") {
  ExaminePrior({2, 3, 4, 6}, {});
  ExaminePrior({1, 1, 3, 2}, {.sizes = {0.3, 0.7, 0.11}, .ratios = {1, 2, 0.5}});
  // The first ratio is that of every size.
  ExaminePrior({1, 2, 2, 3}, {.sizes = {0.3, 0.5}, .ratios = {3, 2, 0.5}});
  ExaminePrior({1, 2, 5, 3}, {.sizes = {0.9}, .ratios = {2}, .clip = true});
  ExaminePrior({0, 0, 1, 4}, {.steps = {0.25, 0.125}, .offsets = {0, 1}});
  ExaminePrior({1, 1, 3, 3}, {.steps = {0, 0.4}});  // not given
  ExaminePrior({1, 2, 3, 2, 5}, {.sizes = {0.2}});  // further axes do not matter
}

TEST_CASE("MultiBoxPrior: parameters and shapes that it does not take") {
  const auto message = [](const Kwargs& kwargs, const TShape& data) {
    return MessageOf([&] {
      const auto op = TestRegistry().Create("MultiBoxPrior", kwargs);
      std::vector<TShape> in = {data}, out(1), aux;
      op->InferShape(&in, &out, &aux);
    });
  };
  const TShape map{1, 2, 3, 4};
  CHECK(message({}, map) == "");
  CHECK(message({{"sizes", "()"}}, map) ==
        "_contrib_MultiBoxPrior: sizes = (): expected one or more numbers");
  CHECK(Says(message({{"ratios", "()"}}, map), "ratios = (): expected one or more numbers"));
  CHECK(Says(message({{"ratios", "(1, 0)"}}, map), "_contrib_MultiBoxPrior: ratios = "));
  CHECK(Says(message({{"sizes", "(-1,)"}}, map), "_contrib_MultiBoxPrior: sizes = "));
  CHECK(Says(message({{"offsets", "(0.5, 1.5)"}}, map), "_contrib_MultiBoxPrior: offsets = "));
  CHECK(Says(message({{"offsets", "(0.5,)"}}, map), "expected two numbers, of y and x"));
  CHECK(Says(message({{"steps", "(0.1, -1)"}}, map), "both above 0 or neither"));
  CHECK(Says(message({{"steps", "(1, 1, 1)"}}, map), "expected two numbers"));
  CHECK(message({}, {3, 4}) ==
        "_contrib_MultiBoxPrior: the data have shape [3, 4]; expected [images, channels, H, W]");
  CHECK(Says(message({}, {1, 2, 0, 4}), "the data have shape [1, 2, 0, 4]"));
  CHECK(Says(message({}, {1, 1, int64_t{1} << 40, int64_t{1} << 40}), "too many elements"));
}

TEST_CASE("MultiBoxPrior: what is known of its shapes") {
  const auto op = TestRegistry().Create("MultiBoxPrior", {{"sizes", "(0.1, 0.2)"}});
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
  std::vector<TShape> in = {{TShape::kUnknown, 3, 4, 5}}, out(1), aux;
  CHECK(!op->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{1, 40, 4});
}

}  // namespace
}  // namespace mxtrain::test
