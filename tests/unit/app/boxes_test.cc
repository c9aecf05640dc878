// SPDX-License-Identifier: Apache-2.0
// Predictions and evaluation of boxes.
#include <doctest/doctest.h>

#include <limits>

#include "app/tasks/detection/box_errors.h"
#include "app/tasks/detection/box_predictor.h"
#include "app/tasks/detection/found_boxes.h"
#include "app/tasks/shape_images.h"
#include "app/tasks/task_list.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::tasks {
namespace {

TrueBox At(int label, double left, double size = 10) {
  return {label, left, 0, left + size, size};
}
FoundBox Found(int label, float score, double left, double size = 10) {
  return {label, score, left, 0, left + size, size};
}

// right, other, misplaced, both, twice, background, missed
std::vector<int64_t> Kinds(const BoxErrors& e) {
  return {e.right, e.other, e.misplaced, e.both, e.twice, e.background, e.missed};
}
std::vector<int64_t> KindsOf(const std::vector<TrueBox>& truth,
                             const std::vector<FoundBox>& found) {
  return Kinds(ErrorsOf(truth, found, nullptr));
}
using Counts = std::vector<int64_t>;

}  // namespace

TEST_CASE("kinds of errors of boxes") {
  const std::vector<TrueBox> truth = {At(0, 0), At(1, 100)};
  CHECK(KindsOf(truth, {Found(0, 0.9f, 1), Found(1, 0.8f, 100)}) == Counts{2, 0, 0, 0, 0, 0, 0});
  CHECK(KindsOf(truth, {}) == Counts{0, 0, 0, 0, 0, 0, 2});
  CHECK(KindsOf(truth, {Found(1, 0.9f, 1)}) == Counts{0, 1, 0, 0, 0, 0, 1});
  CHECK(KindsOf(truth, {Found(0, 0.9f, 6)}) == Counts{0, 0, 1, 0, 0, 0, 2});
  CHECK(KindsOf(truth, {Found(1, 0.9f, 6)}) == Counts{0, 0, 0, 1, 0, 0, 2});
  CHECK(KindsOf(truth, {Found(0, 0.9f, 1), Found(0, 0.8f, 0)}) == Counts{1, 0, 0, 0, 1, 0, 1});
  CHECK(KindsOf(truth, {Found(0, 0.9f, 50)}) == Counts{0, 0, 0, 0, 0, 1, 2});
  // Another class at an object that has been found is not its error as well.
  CHECK(KindsOf(truth, {Found(0, 0.9f, 0), Found(1, 0.8f, 1)}) == Counts{1, 0, 0, 1, 0, 0, 1});
  // What does not count makes its boxes count neither.
  std::vector<TrueBox> ignored = {At(0, 0)};
  ignored[0].difficult = true;
  CHECK(KindsOf(ignored, {Found(1, 0.9f, 0)}) == Counts{0, 0, 0, 0, 0, 0, 0});
  BoxConfusion confusion(3, std::vector<int64_t>(3));
  ErrorsOf(truth, std::vector<FoundBox>{Found(1, 0.9f, 0), Found(0, 0.8f, 50)}, &confusion);
  CHECK(confusion == BoxConfusion{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}});
}

TEST_CASE("boxes of an example are sorted; what is no box is skipped") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows = {1, 0.25f, 5, 6, 20, 30, 0,  0.75f, 1,  2,  3,  4,
                                   1, nan,   5, 6, 20, 30, -1, -1,    -1, -1, -1, -1};
  const std::vector<FoundBox> boxes = BoxesInFile(rows, Example());
  REQUIRE(boxes.size() == 2);
  CHECK(boxes[0].label == 0);
  CHECK(boxes[1].right == 20);
  const auto predictor = NewBoxPredictor(24, 0.5, {"cat", "dog"});
  const auto prediction = predictor->Predict(rows, Example());
  CHECK(prediction->Text() == "1 cat");
  CHECK(prediction->CellRows() ==
        std::vector<std::vector<std::string>>{{"cat", "0.750000", "1.00", "2.00", "3.00", "4.00"}});
  CHECK(prediction->ToJson()["boxes"].size() == 1);
  const auto none = NewBoxPredictor(24, 0.9, {"cat", "dog"})->Predict(rows, Example());
  CHECK(none->Text() == "-");
  CHECK(none->CellRows() == std::vector<std::vector<std::string>>{std::vector<std::string>(6)});
  CHECK(ObjectsOf(std::vector<float>{1, 2, 3, 4, 5, 2, 9, -1, -1, -1, -1, -1, -1, -1}, 7).size() ==
        1);
  CHECK(ObjectsOf(std::vector<float>{1, 2, 3, 4, 5, 2, 9}, 7)[0].area == 9);
  CHECK(ObjectsOf(std::vector<float>{1, 2, 3, 4, 5, 2}, 6)[0].crowd);
}

TEST_CASE("heads of boxes") {
  const auto registry = BuiltinOperators();
  const auto kind_of = [&](const Kwargs& nms, bool suppressed) {
    const Symbol data = Symbol::Variable("data");
    const Kwargs one = {{"kernel", "(1, 1)"}};
    Kwargs of_scores = one, of_sides = one;
    of_scores.emplace_back("num_filter", "5");
    of_sides.emplace_back("num_filter", "4");
    const std::vector<Symbol> maps = {
        Symbol::Create(*registry, "Convolution", "scores", of_scores, std::vector{data}),
        Symbol::Create(*registry, "Convolution", "sides", of_sides, std::vector{data})};
    Symbol net = Symbol::Create(*registry, "PointBoxes", "boxes", {{"strides", "(8,)"}}, maps);
    if (suppressed) net = Symbol::Create(*registry, "box_nms", "nms", nms, std::vector{net});
    net = Symbol::Create(*registry, "BlockGrad", "out", {}, std::vector{net});
    const Head head = HeadsOf(net, net.InferShape({{"data", {2, 3, 4, 4}}}), {"data"})[0];
    const auto task = TaskOf(head, "");
    return format("{} of {}", task ? task->kind() : "none", head.box_classes);
  };
  CHECK(kind_of({{"id_index", "0"}}, true) == "detection of 5");
  CHECK(kind_of({}, false) == "detection of 5");
  CHECK(kind_of({}, true).find("detection") == std::string::npos);  // suppresses across classes
}

TEST_CASE("generated objects have the boxes of their pixels") {
  int objects = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const SynthScene scene = DrawSynthScene(3, 4, i, 48);
    for (const SynthObject& o : scene.objects) {
      ++objects;
      CHECK((o.left >= 0 && o.top >= 0 && o.right <= scene.classes.width &&
             o.bottom <= scene.classes.height));
      int inside = 0;
      for (int y = o.top; y < o.bottom; ++y) {
        for (int x = o.left; x < o.right; ++x)
          inside += scene.classes.row(y)[x] == static_cast<int>(o.shape) + 1;
      }
      CHECK(inside * 8 >= (o.right - o.left) * (o.bottom - o.top));
    }
  }
  CHECK(objects > 12);
}

}  // namespace mxtrain::tasks
