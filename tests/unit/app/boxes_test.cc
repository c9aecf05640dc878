// SPDX-License-Identifier: Apache-2.0
// Predictions and evaluation of boxes.
#include <doctest/doctest.h>

#include <limits>

#include "app/tasks/detection/box_errors.h"
#include "app/tasks/detection/box_predictor.h"
#include "app/tasks/detection/found_boxes.h"
#include "app/tasks/detection/joined_boxes.h"
#include "app/tasks/shape_images.h"
#include "app/tasks/task_list.h"
#include "mxtrain/io/random_stream.h"
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

// Every tile sees of the objects what lies in it, if that is enough, as a perfect detector would.
std::vector<FoundBox> SeenInTiles(const std::vector<FoundBox>& objects, int height, int width,
                                  const io::TileOptions& options, double error, uint64_t seed) {
  io::RandomStream random(seed, 0, 0);
  JoinedBoxes joined;
  for (const io::TileSpan& y : io::TilesAlong(height, options)) {
    for (const io::TileSpan& x : io::TilesAlong(width, options)) {
      io::Tile tile;
      tile.box = {y.begin, x.begin, y.length, x.length};
      tile.height = height, tile.width = width;
      std::vector<FoundBox> found;
      for (const FoundBox& object : objects) {
        FoundBox seen = object;
        seen.left = std::max<double>(seen.left, x.begin);
        seen.top = std::max<double>(seen.top, y.begin);
        seen.right = std::min<double>(seen.right, x.begin + x.length);
        seen.bottom = std::min<double>(seen.bottom, y.begin + y.length);
        if (seen.right - seen.left < 4 || seen.bottom - seen.top < 4) continue;
        for (double* side : {&seen.left, &seen.top, &seen.right, &seen.bottom})
          *side += random.Uniform(-error, error);
        seen.score = static_cast<float>(random.Uniform(0.3, 1));
        found.push_back(seen);
      }
      joined.Add(tile, found);
    }
  }
  return joined.Take();
}

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

TEST_CASE("objects that tiles see in parts are found once, with their whole boxes") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    io::RandomStream random(seed, 1, 0);
    // Objects in a grid, apart from each other, of any size up to three tiles.
    std::vector<FoundBox> objects;
    const int cell = 20 + static_cast<int>(random.Below(160)), height = 300, width = 410;
    for (int top = 0; top + cell <= height; top += cell) {
      for (int left = 0; left + cell <= width; left += cell) {
        const double x = left + random.Uniform(0, cell / 4.0),
                     y = top + random.Uniform(0, cell / 4.0);
        objects.push_back({static_cast<int>(random.Below(2)), 0, x, y,
                           x + random.Uniform(cell / 3.0, cell * 0.7),
                           y + random.Uniform(cell / 3.0, cell * 0.7)});
      }
    }
    for (const double error : {0.0, 0.5}) {
      const auto found = SeenInTiles(objects, height, width, {64, 24}, error, seed);
      REQUIRE(found.size() == objects.size());
      for (const FoundBox& object : objects) {
        const auto same = std::ranges::find_if(found, [&](const FoundBox& box) {
          return box.label == object.label && std::abs(box.left - object.left) <= error + 1e-9 &&
                 std::abs(box.top - object.top) <= error + 1e-9 &&
                 std::abs(box.right - object.right) <= error + 1e-9 &&
                 std::abs(box.bottom - object.bottom) <= error + 1e-9;
        });
        CHECK(same != found.end());
      }
      for (size_t i = 1; i < found.size(); ++i) CHECK(found[i - 1].score >= found[i].score);
    }
  }
}

TEST_CASE("very many boxes of very many tiles are joined in a moment") {
  // 2,500 tiles with 80 boxes each, of which every second one is seen by a neighbour, too:
  // comparing all with all would take minutes.
  JoinedBoxes joined;
  io::RandomStream random(3, 0, 0);
  int64_t boxes = 0;
  for (int y = 0; y < 50; ++y) {
    for (int x = 0; x < 50; ++x) {
      io::Tile tile;
      tile.box = {y * 8, x * 8, 16, 16};
      tile.height = tile.width = 49 * 8 + 16;
      std::vector<FoundBox> found;
      for (int i = 0; i < 80; ++i) {
        const double left = x * 8 + random.Uniform(0, 12), top = y * 8 + random.Uniform(0, 12);
        found.push_back(
            {i % 4, static_cast<float>(random.Uniform()), left, top, left + 4, top + 4});
      }
      boxes += std::ssize(found);
      joined.Add(tile, std::move(found));
    }
  }
  const auto objects = joined.Take();
  CHECK(std::ssize(objects) > boxes / 20);
  CHECK(std::ssize(objects) < boxes);
}

TEST_CASE("boxes of two tiles that are of two objects stay two") {
  io::Tile left, right;
  left.box = {0, 0, 100, 100}, right.box = {0, 80, 100, 100};
  left.height = right.height = 100, left.width = right.width = 180;
  JoinedBoxes joined;
  // Of one place, but two classes; beside each other in what both see; and one in each.
  joined.Add(left,
             {{0, 0.9f, 82, 10, 98, 30}, {1, 0.8f, 82, 40, 89, 60}, {0, 0.7f, 10, 70, 30, 90}});
  joined.Add(right,
             {{1, 0.6f, 82, 10, 98, 30}, {1, 0.5f, 91, 40, 98, 60}, {0, 0.4f, 110, 70, 130, 90}});
  CHECK(joined.Take().size() == 6);
  CHECK(joined.Take().empty());
  // Two of one tile are as the net left them.
  joined.Add(left, {{0, 0.9f, 10, 10, 30, 30}, {0, 0.8f, 11, 10, 31, 30}});
  CHECK(joined.Take().size() == 2);
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

TEST_CASE("heads of boxes of anchors") {
  const auto registry = BuiltinOperators();
  const auto make = [&](const std::string& op, const std::string& name, const Kwargs& params,
                        const std::vector<Symbol>& inputs) {
    return Symbol::Create(*registry, op, name, params, inputs);
  };
  const Symbol data = Symbol::Variable("data");
  const std::vector<Symbol> says = {make("Reshape", "scores", {{"shape", "(0, -1, 4)"}}, {data}),
                                    make("Reshape", "offsets", {{"shape", "(0, -1, 4)"}}, {data}),
                                    make("MultiBoxPrior", "anchors", {}, {data})};
  const Symbol proposals = make("AnchorBoxes", "boxes", {{"size", "(20, 20)"}}, says);
  const Symbol separate = make("box_nms", "separate", {}, {proposals});
  const Symbol together = make("Reshape", "together", {{"shape", "(0, -1, 6)"}}, {separate});
  const auto kind_of = [&](const Symbol& net) {
    const Head head = HeadsOf(net, net.InferShape({{"data", {2, 4, 3, 3}}}), {"data"})[0];
    const auto task = TaskOf(head, "");
    return format("{} of {}", task ? task->kind() : "none", head.box_classes);
  };
  CHECK(kind_of(make("box_nms", "ordered", {{"id_index", "0"}}, {together})) == "detection of 3");
  CHECK(kind_of(proposals).find("detection") == std::string::npos);  // not a list of rows
  CHECK(kind_of(together).find("detection") == std::string::npos);   // not in the order of scores
}

TEST_CASE("heads of boxes of regions") {
  const auto registry = BuiltinOperators();
  const auto make = [&](const std::string& op, const std::string& name, const Kwargs& params,
                        const std::vector<Symbol>& inputs) {
    return Symbol::Create(*registry, op, name, params, inputs);
  };
  const Symbol data = Symbol::Variable("data");
  const Symbol rois = make("slice_axis", "first", {{"axis", "2"}, {"begin", "0"}, {"end", "5"}},
                           {make("Reshape", "tens", {{"shape", "(0, 10, -1)"}}, {data})});
  const Symbol scores = make("slice_axis", "some", {{"axis", "2"}, {"begin", "0"}, {"end", "4"}},
                             {make("Reshape", "more", {{"shape", "(0, 10, -1)"}}, {data})});
  const Symbol offsets = make("Reshape", "numbers", {{"shape", "(0, 10, -1)"}}, {data});
  const Symbol boxes = make("RegionBoxes", "boxes", {}, {rois, scores, offsets, data});
  const Symbol separate = make("box_nms", "separate", {}, {boxes});
  const Symbol together = make("Reshape", "together", {{"shape", "(0, -1, 6)"}}, {separate});
  const Symbol net = make("box_nms", "ordered", {{"id_index", "0"}}, {together});
  const Head head = HeadsOf(net, net.InferShape({{"data", {2, 16, 2, 5}}}), {"data"})[0];
  const auto task = TaskOf(head, "");
  REQUIRE(task);
  CHECK(task->kind() == "detection");
  CHECK(head.box_classes == 3);
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
