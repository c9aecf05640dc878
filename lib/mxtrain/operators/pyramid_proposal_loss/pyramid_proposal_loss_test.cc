// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/box_overlap.h"
#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"
#include "tests/support/pyramid_boxes.h"

namespace mxtrain::test {
namespace {

struct ProposalLossSettings {
  double foreground = 0.5, background = 0.3, share = 1, box_weight = 1, scale = 1;
  int64_t samples = 1 << 20;
};

// A batch by the definition in the header, if all anchors are in the sample. Arrays: the maps, then
// the label.
class ProposalScene {
 public:
  static constexpr int kNone = -1, kNothing = -2;

  ProposalScene(const ProposalLossSettings& settings, const Arrays& in, size_t images)
      : settings_(settings), in_(in), images_(images) {
    objects_ = images == 0 ? 0 : in[4].size() / images / 6;
    for (size_t n = 0; n < images; ++n) roles_.push_back(RolesOf(n));
    for (const std::vector<int>& roles : roles_) {
      for (const int role : roles) learnt_ += role != kNothing;
    }
  }
  const std::vector<int>& roles(size_t image) const { return roles_[image]; }
  long double Factor() const {
    return static_cast<long double>(images_) / std::max<long double>(learnt_, 1);
  }
  Values Losses() const {
    Values losses;
    for (size_t n = 0; n < images_; ++n) {
      long double sum = 0;
      for (size_t a = 0; a < anchors_.size(); ++a) sum += Term(n, a);
      losses.push_back(static_cast<double>(sum * Factor()));
    }
    return losses;
  }
  // What anchor `a` adds, with its score (moved = 0) or an offset (1 to 4) moved.
  long double Term(size_t n, size_t a, size_t moved = 0, long double by = 0) const {
    const int role = roles_[n][a];
    if (role == kNothing) return 0;
    const PyramidAnchor& at = anchors_[a];
    const long double score = SmallPyramid::Score(in_, n, at) + (moved == 0 ? by : 0);
    long double loss = std::log(1 + std::exp(role >= 0 ? -score : score));
    if (role < 0) return loss;
    const double* object = Label(n, static_cast<size_t>(role)) + 1;
    for (size_t k = 0; k < 4; ++k) {
      const size_t axis = k % 2;
      const long double own = axis == 0 ? at.width : at.height, middle = axis == 0 ? at.x : at.y,
                        other = object[axis + 2] - object[axis];
      const long double target =
          k < 2 ? ((object[axis] + object[axis + 2]) / 2 - middle) / own : std::log(other / own);
      const long double off =
          std::abs(SmallPyramid::Offset(in_, n, at, k) + (moved == k + 1 ? by : 0) - target);
      loss += settings_.box_weight * (off < 1 / 9.0L ? 4.5L * off * off : off - 1 / 18.0L);
    }
    return loss;
  }
  // By central differences of fourth order.
  Arrays Differences() const {
    Arrays grads(5);
    for (size_t i = 0; i < 4; ++i) grads[i].resize(in_[i].size());
    for (size_t n = 0; n < images_; ++n) {
      for (size_t a = 0; a < anchors_.size(); ++a) {
        for (size_t moved = 0; moved < 5; ++moved) {
          const long double step = 1e-4L;
          const auto at = [&](long double steps) { return Term(n, a, moved, steps * step); };
          const long double slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
          const PyramidAnchor& own = anchors_[a];
          Values& map = grads[moved == 0 ? own.level : 2 + own.level];
          const size_t index = moved == 0 ? SmallPyramid::Index(n, own, 0, 1)
                                          : SmallPyramid::Index(n, own, moved - 1, 4);
          map[index] = static_cast<double>(settings_.scale * Factor() * slope);
        }
      }
    }
    return grads;
  }

 private:
  const double* Label(size_t n, size_t m) const { return &in_[4][(n * objects_ + m) * 6]; }
  bool IsObject(size_t n, size_t m) const {
    const double* x = Label(n, m);
    return x[0] >= 0 && x[3] > x[1] && x[4] > x[2];
  }
  double Overlap(size_t n, size_t m, size_t a) const {
    if (!IsObject(n, m) || Label(n, m)[5] != 0) return 0;
    return BoxOverlap(anchors_[a].Corners().data(), Label(n, m) + 1);
  }
  bool IsIgnored(size_t n, size_t a) const {
    const Values own = anchors_[a].Corners();
    for (size_t m = 0; m < objects_; ++m) {
      const double* x = Label(n, m) + 1;
      const double w = std::min(own[2], x[2]) - std::max(own[0], x[0]),
                   h = std::min(own[3], x[3]) - std::max(own[1], x[1]);
      if (IsObject(n, m) && Label(n, m)[5] != 0 && w > 0 && h > 0 &&
          w * h >= settings_.foreground * anchors_[a].width * anchors_[a].height)
        return true;
    }
    return false;
  }
  std::vector<int> RolesOf(size_t n) const {
    std::vector<double> most(objects_);
    for (size_t m = 0; m < objects_; ++m) {
      for (size_t a = 0; a < anchors_.size(); ++a) most[m] = std::max(most[m], Overlap(n, m, a));
    }
    std::vector<int> roles;
    for (size_t a = 0; a < anchors_.size(); ++a) {
      double best = 0;
      int own = kNone;
      bool is_best = false;
      for (size_t m = 0; m < objects_; ++m) {
        const double overlap = Overlap(n, m, a);
        if (overlap > best) best = overlap, own = static_cast<int>(m);
        is_best |= overlap > 0 && overlap >= most[m] * (1 - 1e-6);
      }
      if (is_best || best >= settings_.foreground) {
        roles.push_back(own);
      } else {
        roles.push_back(best >= settings_.background || IsIgnored(n, a) ? kNothing : kNone);
      }
    }
    return roles;
  }

  const ProposalLossSettings settings_;
  const Arrays& in_;
  const size_t images_;
  size_t objects_ = 0;
  const std::vector<PyramidAnchor> anchors_ = SmallPyramid::Anchors();
  std::vector<std::vector<int>> roles_;
  double learnt_ = 0;
};

// Three images: of two objects that want the same anchors and one between two anchors, which
// overlap it equally; of one that nothing is learnt of and a small one; of none.
const Values kProposalLabels = {
    4,  2.3, 1.1, 11.7, 9.2, 0,  0,  3.1, 0.2, 13.2, 9.4, 0,  9,  14, 10, 22, 16, 0,
    0,  8.2, 5.1, 31.3, 23,  1,  2,  1.1, 14,  3.7,  17,  0,  -1, -1, -1, -1, -1, -1,
    -1, -1,  -1,  -1,   -1,  -1, -1, -1,  -1,  -1,   -1,  -1, 1,  9,  9,  3,  3,  0};

OperatorCase ProposalLossCase(const std::string& name, const ProposalLossSettings& settings,
                              int64_t images = 3) {
  OperatorCase c;
  c.op = "PyramidProposalLoss";
  c.name = "PyramidProposalLoss, " + name;
  for (const auto& [key, value] : SmallPyramid::Parameters()) c.kwargs.emplace_back(key, value);
  c.kwargs.emplace_back("foreground", std::to_string(settings.foreground));
  c.kwargs.emplace_back("background", std::to_string(settings.background));
  c.kwargs.emplace_back("samples", std::to_string(std::min<int64_t>(settings.samples, 1 << 20)));
  c.kwargs.emplace_back("object_share", std::to_string(settings.share));
  c.kwargs.emplace_back("box_weight", std::to_string(settings.box_weight));
  c.kwargs.emplace_back("grad_scale", std::to_string(settings.scale));
  c.shapes = SmallPyramid::Shapes(images);
  c.shapes.push_back({images, 3, 6});
  c.inputs = {Distinct(-3, 3), Distinct(-2.9, 2.9), Distinct(-1, 1), Distinct(-1, 1),
              Cycle(kProposalLabels)};
  c.tolerance = {200, "differences of coordinates over sides, and sums over anchors"};
  return c;
}

void ExamineProposalLoss(const std::string& name, const ProposalLossSettings& settings,
                         int64_t images = 3) {
  OperatorCase c = ProposalLossCase(name, settings, images);
  const auto count = static_cast<size_t>(images);
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{ProposalScene(settings, in, count).Losses()};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays&) {
    return ProposalScene(settings, in, count).Differences();
  };
  RunCase(c);
}

TEST_CASE("PyramidProposalLoss of all anchors") {
  ExamineProposalLoss("three images", {});
  ExamineProposalLoss("high threshold", {.foreground = 0.8, .background = 0.1});
  ExamineProposalLoss("weights", {.box_weight = 2.5, .scale = 0.25});
  ExamineProposalLoss("no boxes", {.box_weight = 0}, 1);
  ExamineProposalLoss("no image", {}, 0);
}

// The gradient of a sample is that of all, times what the sample is smaller by, or zero.
std::vector<std::string> CheckProposalSample(const ProposalLossSettings& settings,
                                             const CaseResult& r) {
  constexpr size_t kImages = 3;
  std::vector<std::string> problems;
  const ProposalScene scene(settings, r.in, kImages);
  const std::vector<PyramidAnchor> anchors = SmallPyramid::Anchors();
  std::vector<std::vector<bool>> chosen(kImages);
  long double learnt = 0;
  for (size_t n = 0; n < kImages; ++n) {
    int64_t there[2] = {}, taken[2] = {};  // of the background, of objects
    for (size_t a = 0; a < anchors.size(); ++a) {
      const int role = scene.roles(n)[a];
      const double slope = r.in_grad[anchors[a].level][SmallPyramid::Index(n, anchors[a], 0, 1)];
      chosen[n].push_back(slope != 0);
      learnt += slope != 0;
      if (role == ProposalScene::kNothing) {
        if (slope != 0) problems.push_back(format("image {}: anchor {} is learnt", n, a));
        continue;
      }
      ++there[role >= 0];
      taken[role >= 0] += slope != 0;
    }
    const int64_t objects = std::min(
        there[1], static_cast<int64_t>(static_cast<double>(settings.samples) * settings.share));
    if (taken[1] != objects || taken[0] != std::min(there[0], settings.samples - objects)) {
      problems.push_back(format("image {}: {} and {} of {} and {} are learnt", n, taken[1],
                                taken[0], there[1], there[0]));
    }
  }
  for (size_t n = 0; n < kImages; ++n) {
    long double loss = 0;
    for (size_t a = 0; a < anchors.size(); ++a) {
      if (chosen[n][a]) loss += scene.Term(n, a);
    }
    loss *= kImages / learnt;
    if (std::abs(static_cast<double>(loss) - r.out[0][n]) > 1e-4 * std::abs(r.out[0][n]))
      problems.push_back(
          format("image {}: loss {}, expected {}", n, r.out[0][n], static_cast<double>(loss)));
  }
  return problems;
}

TEST_CASE("PyramidProposalLoss of a sample") {
  for (const ProposalLossSettings& settings : {ProposalLossSettings{.share = 0.5, .samples = 8},
                                               {.share = 0.25, .samples = 30},
                                               {.share = 0, .samples = 5},
                                               {.share = 1, .samples = 2}}) {
    OperatorCase c = ProposalLossCase(format("sample of {}", settings.samples), settings);
    c.check = [settings](const CaseResult& r) { return CheckProposalSample(settings, r); };
    RunCase(c);
  }
}

TEST_CASE("PyramidProposalLoss: parameters, shapes and types") {
  const Kwargs kwargs = {{"strides", "(4, 8)"}, {"sizes", "(16, 32)"}};
  const auto op = TestRegistry().Create("PyramidProposalLoss", kwargs);
  CHECK(op->ListArguments().back() == "label");
  CHECK(!op->NeedsHeadGradient());
  CHECK(op->HasGradient(3));
  CHECK(!op->HasGradient(4));
  std::vector<TShape> in = {TShape(),
                            {TShape::kUnknown, 3, 3, 2},
                            {TShape::kUnknown, 12, 5, 4},
                            TShape(),
                            {2, 7, 6}},
                      out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 5, 4});
  CHECK(out[0] == TShape{2});
  std::vector<DType> types(5, DType::kUnknown), result(1, DType::kUnknown), none;
  types[1] = DType::kFloat16;
  CHECK(op->InferType(&types, &result, &none));
  CHECK(types[4] == DType::kFloat32);
  in[4] = {2, 7, 5};
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }),
             "PyramidProposalLoss: label has shape"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create(
                   "PyramidProposalLoss",
                   {{"strides", "(4,)"}, {"sizes", "(16,)"}, {"background", "0.8"}});
             }),
             "background = 0.8 is above foreground = 0.7"));
}

}  // namespace
}  // namespace mxtrain::test
