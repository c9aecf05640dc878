// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct TargetSettings {
  int64_t samples = 8;
  double foreground = 0.5, background = 0.5, share = 0.25;
};

// What a region may become: its two rows of the outputs.
struct LearntRegion {
  Values region, target;
};
// Of an image: those that are to find an object, and those of the background.
struct LearntRegions {
  std::vector<LearntRegion> objects, background;
};

LearntRegions LearntFrom(const TargetSettings& settings, const Arrays& in, size_t image,
                         size_t regions, size_t objects) {
  LearntRegions all;
  const auto label = [&](size_t m) { return &in[1][(image * objects + m) * 6]; };
  const auto is_object = [&](size_t m) {
    return label(m)[0] >= 0 && label(m)[3] > label(m)[1] && label(m)[4] > label(m)[2];
  };
  std::vector<Values> boxes;
  for (size_t r = image * regions; r < (image + 1) * regions; ++r) {
    const double* roi = &in[0][r * 5];
    if (roi[0] >= 0 && roi[3] > roi[1] && roi[4] > roi[2])
      boxes.emplace_back(&in[0][r * 5 + 1], &in[0][r * 5 + 5]);
  }
  for (size_t m = 0; m < objects; ++m) {
    if (is_object(m) && label(m)[5] == 0) boxes.emplace_back(label(m) + 1, label(m) + 5);
  }
  for (const Values& box : boxes) {
    double best = 0;
    size_t own = 0;
    bool ignored = false;
    for (size_t m = 0; m < objects; ++m) {
      if (!is_object(m)) continue;
      const double* object = label(m) + 1;
      if (label(m)[5] == 0) {
        const double overlap = BoxOverlap(box.data(), object);
        if (overlap > best) best = overlap, own = m;
      } else {
        const double w = std::min(box[2], object[2]) - std::max(box[0], object[0]),
                     h = std::min(box[3], object[3]) - std::max(box[1], object[1]);
        ignored |=
            w > 0 && h > 0 && w * h >= settings.foreground * (box[2] - box[0]) * (box[3] - box[1]);
      }
    }
    LearntRegion learnt{{static_cast<double>(image)}, {0, 0, 0, 0, 0}};
    learnt.region.insert(learnt.region.end(), box.begin(), box.end());
    if (best >= settings.foreground) {
      learnt.target[0] = label(own)[0] + 1;
      const double variances[] = {0.1, 0.1, 0.2, 0.2};
      for (size_t k = 0; k < 4; ++k) {
        const size_t axis = k % 2;
        const double side = box[axis + 2] - box[axis],
                     other = label(own)[axis + 3] - label(own)[axis + 1];
        const double between =
            (label(own)[axis + 3] + label(own)[axis + 1] - box[axis + 2] - box[axis]) / 2;
        learnt.target[k + 1] = (k < 2 ? between / side : std::log(other / side)) / variances[k];
      }
      all.objects.push_back(learnt);
    } else if (best < settings.background && !ignored) {
      all.background.push_back(learnt);
    }
  }
  return all;
}

bool Near(const Values& a, const double* b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-4 * std::max(1.0, std::abs(a[i]))) return false;
  }
  return true;
}
// Takes the candidate out whose rows these are; whether there was one.
bool Take(std::vector<LearntRegion>* from, const double* region, const double* target) {
  for (size_t i = 0; i < from->size(); ++i) {
    if (!Near((*from)[i].region, region) || !Near((*from)[i].target, target)) continue;
    from->erase(from->begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

std::vector<std::string> CheckSample(const TargetSettings& settings, const CaseResult& result,
                                     const std::vector<TShape>& shapes) {
  std::vector<std::string> problems;
  const auto samples = static_cast<size_t>(settings.samples);
  for (size_t n = 0; n < static_cast<size_t>(shapes[0][0]); ++n) {
    LearntRegions left = LearntFrom(settings, result.in, n, static_cast<size_t>(shapes[0][1]),
                                    static_cast<size_t>(shapes[1][1]));
    const size_t objects = std::min(
        left.objects.size(), static_cast<size_t>(static_cast<double>(samples) * settings.share));
    const size_t background = std::min(left.background.size(), samples - objects);
    for (size_t i = 0; i < samples; ++i) {
      const size_t row = (n * samples + i) * 5;
      const double *region = &result.out[0][row], *target = &result.out[1][row];
      const bool good = i < objects ? Take(&left.objects, region, target)
                        : i < objects + background
                            ? Take(&left.background, region, target)
                            : Near(Values(5, -1.0), region) && Near({-1, 0, 0, 0, 0}, target);
      if (!good) problems.push_back(format("image {}: row {} is not what may be there", n, i));
    }
  }
  return problems;
}

// Of two images: one with two objects and one that nothing is learnt of, one without; rows of no
// region, and of one without an area.
const Values kSampledRegions = {
    0, 10, 10, 30, 30, 0, 11, 9, 31, 32, 0, 0,  0, 5,  5,  0, 40, 40, 70, 80, 0,  20, 20, 45, 45,
    0, 50, 50, 90, 90, 0, 81, 5, 95, 20, 0, 82, 8, 96, 18, 0, 5,  50, 25, 70, -1, -1, -1, -1, -1,
    1, 10, 10, 30, 30, 1, 11, 9, 31, 32, 1, 0,  0, 5,  5,  1, 40, 40, 70, 80, 1,  20, 20, 45, 45,
    1, 50, 50, 90, 90, 1, 81, 5, 95, 20, 1, 7,  7, 7,  9,  1, 5,  50, 25, 70, -1, -1, -1, -1, -1};
const Values kSampledLabels = {3,  12, 10, 32,  30, 0,  1,  42, 38, 68, 82, 0,
                               2,  80, 0,  100, 30, 1,  -1, -1, -1, -1, -1, -1,
                               -1, -1, -1, -1,  -1, -1, -1, -1, -1, -1, -1, -1};
const std::vector<TShape> kSampledShapes = {{2, 10, 5}, {2, 3, 6}};

OperatorCase TargetsCase(const std::string& name, const TargetSettings& settings) {
  OperatorCase c;
  c.op = "RegionTargets";
  c.name = "RegionTargets, " + name;
  c.kwargs = {{"samples", std::to_string(settings.samples)},
              {"foreground", std::to_string(settings.foreground)},
              {"background", std::to_string(settings.background)},
              {"object_share", std::to_string(settings.share)}};
  c.shapes = kSampledShapes;
  c.inputs = {Cycle(kSampledRegions), Cycle(kSampledLabels)};
  c.check = [=, shapes = c.shapes](const CaseResult& r) {
    return CheckSample(settings, r, shapes);
  };
  c.backward = false;
  return c;
}

TEST_CASE("RegionTargets") {
  RunCase(TargetsCase("usual", {}));
  RunCase(TargetsCase("all of them", {.samples = 40, .share = 1}));
  RunCase(TargetsCase("one", {.samples = 1}));
  RunCase(TargetsCase("half objects", {.samples = 5, .share = 0.5}));
  RunCase(
      TargetsCase("between", {.samples = 20, .foreground = 0.7, .background = 0.2, .share = 0.5}));
  OperatorCase none = TargetsCase("no image", {});
  none.shapes = {{0, 10, 5}, {0, 3, 6}};
  none.check = [](const CaseResult&) { return std::vector<std::string>(); };
  RunCase(none);
}

// Every region of the background is chosen about as often as any other.
TEST_CASE("RegionTargets: a sample is random") {
  std::map<double, int> chosen;  // by the left side, which differs
  constexpr int64_t kImages = 400;
  OperatorCase c = TargetsCase("random", {.samples = 2});
  Values regions, labels(static_cast<size_t>(kImages) * 6, -1.0);
  for (int64_t n = 0; n < kImages; ++n) {
    for (int r = 0; r < 8; ++r) {
      const double left = 10.0 * r;
      regions.insert(regions.end(), {static_cast<double>(n), left, 5, left + 8, 9});
    }
  }
  c.shapes = {{kImages, 8, 5}, {kImages, 1, 6}};
  c.inputs = {Cycle(regions), Cycle(labels)};
  c.types = {DType::kFloat32};
  c.check = [&chosen](const CaseResult& r) {
    chosen.clear();
    for (size_t i = 0; i < r.out[0].size(); i += 5) ++chosen[r.out[0][i + 1]];
    return std::vector<std::string>();
  };
  RunCase(c);
  REQUIRE(chosen.size() == 8);
  for (const auto& [left, count] : chosen) {
    INFO("left ", left, ": ", count);
    CHECK(std::abs(count - 100) < 5 * std::sqrt(400 * 0.25 * 0.75));
  }
}

TEST_CASE("RegionTargets: parameters, shapes and types") {
  const auto op = TestRegistry().Create("RegionTargets", {{"samples", "7"}});
  CHECK(op->ListOutputs() == std::vector<std::string>{"output", "targets"});
  CHECK(!op->HasGradient(0));
  CHECK(op->NeedsHeadGradient());
  std::vector<TShape> in = {{2, 10, 5}, {TShape::kUnknown, 3, 6}}, out(2), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 3, 6});
  CHECK(out[1] == TShape{2, 7, 5});
  in[0] = {2, 10, 4};
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }), "RegionTargets: rois has shape"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("RegionTargets", {{"foreground", "0.4"}});
             }),
             "RegionTargets: background = 0.5 is above foreground = 0.4"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("RegionTargets", {{"variances", "(1,)"}});
             }),
             "expected four numbers"));
}

}  // namespace
}  // namespace mxtrain::test
