// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"
#include "tests/support/pyramid_boxes.h"

namespace mxtrain::test {
namespace {

struct ProposalSettings {
  size_t candidates = 1000, count = 1000;
  double overlap = 0.7, least_side = 1e-3;
};

struct ProposedBox {
  double score;
  size_t level;
  Values box;
};

// Of an image, the best first.
std::vector<ProposedBox> ProposedInImage(const ProposalSettings& settings, const Arrays& in,
                                         size_t image) {
  std::vector<ProposedBox> all;
  for (size_t l = 0; l < SmallPyramid::kLevels; ++l) {
    std::vector<ProposedBox> of_level;
    for (const PyramidAnchor& at : SmallPyramid::Anchors()) {
      if (at.level != l) continue;
      Values box(4);
      for (size_t axis = 0; axis < 2; ++axis) {
        const double length = axis == 0 ? SmallPyramid::kWidth : SmallPyramid::kHeight,
                     extent = axis == 0 ? at.width : at.height;
        const double middle =
            (axis == 0 ? at.x : at.y) + extent * SmallPyramid::Offset(in, image, at, axis);
        const double half =
            extent / 2 * std::min(62.5, std::exp(SmallPyramid::Offset(in, image, at, axis + 2)));
        box[axis] = std::clamp(middle - half, 0.0, length);
        box[axis + 2] = std::clamp(middle + half, 0.0, length);
      }
      of_level.push_back({SmallPyramid::Score(in, image, at), l, box});
    }
    const auto better = [](const ProposedBox& a, const ProposedBox& b) {
      return a.score > b.score;
    };
    std::stable_sort(of_level.begin(), of_level.end(), better);
    of_level.resize(std::min(of_level.size(), settings.candidates));
    std::erase_if(of_level, [&](const ProposedBox& p) {
      return p.box[2] - p.box[0] < settings.least_side || p.box[3] - p.box[1] < settings.least_side;
    });
    all.insert(all.end(), of_level.begin(), of_level.end());
    std::stable_sort(all.begin(), all.end(), better);
  }
  std::vector<ProposedBox> kept;
  for (const ProposedBox& p : all) {
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](const ProposedBox& other) {
      return other.level == p.level &&
             BoxOverlap(other.box.data(), p.box.data()) > settings.overlap;
    });
    if (!suppressed) kept.push_back(p);
  }
  return kept;
}

Values RegionsOf(const ProposalSettings& settings, const Arrays& in, size_t images) {
  Values out;
  for (size_t n = 0; n < images; ++n) {
    std::vector<ProposedBox> kept = ProposedInImage(settings, in, n);
    kept.resize(std::min(kept.size(), settings.count));
    for (const ProposedBox& p : kept) {
      out.push_back(static_cast<double>(n));
      out.insert(out.end(), p.box.begin(), p.box.end());
    }
    out.resize((n + 1) * settings.count * 5, -1);
  }
  return out;
}

void ExamineRegions(const std::string& name, const ProposalSettings& settings, int64_t images,
                    double most_offset = 0.6) {
  OperatorCase c;
  c.op = "PyramidProposals";
  c.name = "PyramidProposals, " + name;
  for (const auto& [key, value] : SmallPyramid::Parameters()) c.kwargs.emplace_back(key, value);
  c.kwargs.emplace_back("candidates", std::to_string(settings.candidates));
  c.kwargs.emplace_back("count", std::to_string(settings.count));
  c.kwargs.emplace_back("overlap", std::to_string(settings.overlap));
  c.kwargs.emplace_back("least_side", std::to_string(settings.least_side));
  c.shapes = SmallPyramid::Shapes(images);
  c.inputs = {Distinct(-3, 3), Distinct(-2.9, 2.9), Distinct(-most_offset, most_offset)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{RegionsOf(settings, in, static_cast<size_t>(images))};
  };
  c.backward = false;
  c.tolerance = {400, "exponentials times the sides of an anchor"};
  RunCase(c);
}

TEST_CASE("PyramidProposals") {
  ExamineRegions("all anchors", {.count = 150}, 2);
  ExamineRegions("the best of each level", {.candidates = 7, .count = 30, .overlap = 0.3}, 3);
  ExamineRegions("more than there are", {.candidates = 5, .count = 40}, 2);
  ExamineRegions("few", {.count = 3}, 1);
  ExamineRegions("nothing is suppressed", {.count = 200, .overlap = 1}, 1);
  ExamineRegions("short sides", {.count = 150, .least_side = 6}, 2);
  ExamineRegions("boxes larger than they may be", {.count = 50}, 1, 6);
  ExamineRegions("no images", {.count = 5}, 0);
}

TEST_CASE("PyramidProposals: parameters, shapes and types") {
  const auto make = [](Kwargs changes) {
    Kwargs kwargs = {{"strides", "(4, 8)"}, {"sizes", "(16, 32)"}, {"count", "9"}};
    kwargs.insert(kwargs.end(), changes.begin(), changes.end());
    return TestRegistry().Create("PyramidProposals", kwargs);
  };
  const auto op = make({});
  CHECK(op->ListArguments() == std::vector<std::string>{"score0", "score1", "offset0", "offset1"});
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
  std::vector<TShape> in = {TShape(), {2, 3, 3, 2}, {TShape::kUnknown, 12, 5, 4}, TShape()}, out(1),
                      aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 5, 4});
  CHECK(in[3] == TShape{2, 12, 3, 2});
  CHECK(out[0] == TShape{2, 9, 5});
  std::vector<DType> types(4, DType::kUnknown), result(1, DType::kUnknown), none;
  types[2] = DType::kFloat16;
  CHECK(op->InferType(&types, &result, &none));
  CHECK(types[0] == DType::kFloat16);
  CHECK(result[0] == DType::kFloat32);
  const auto refusal = [&op](std::vector<TShape> given) {
    std::vector<TShape> rows(1), states;
    return MessageOf([&] { op->InferShape(&given, &rows, &states); });
  };
  CHECK(Says(refusal({{2, 4, 5, 4}, TShape(), TShape(), TShape()}),
             "PyramidProposals: score0 has shape [2, 4, 5, 4]"));
  CHECK(
      Says(refusal({{2, 3, 5, 4}, {2, 3, 3, 4}, TShape(), TShape()}),
           "score1 has shape [2, 3, 3, 4]; of an image of 16 pixels, which the first level covers, "
           "a side at stride 8 has 2 cells"));
  CHECK(Says(refusal({{2, 3, 0, 4}, {2, 3, 2, 2}, TShape(), TShape()}), "which has no cell"));
  CHECK(
      Says(MessageOf([&] {
             TestRegistry().Create("PyramidProposals", {{"strides", "(4, 8)"}, {"sizes", "(16,)"}});
           }),
           "expected 2, one for each of the strides"));
  CHECK(Says(MessageOf([&] {
               TestRegistry().Create("PyramidProposals", {{"strides", "(0,)"}, {"sizes", "(16,)"}});
             }),
             "expected one to 8 positive numbers, one per level"));
  CHECK(Says(MessageOf([&] {
               TestRegistry().Create("PyramidProposals",
                                     {{"strides", "(4,)"}, {"sizes", "(16,)"}, {"ratios", "()"}});
             }),
             "expected one to 8 numbers"));
}

}  // namespace
}  // namespace mxtrain::test
