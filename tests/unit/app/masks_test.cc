// SPDX-License-Identifier: Apache-2.0
// Predictions and evaluation of classes of pixels, against brute force.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "app/report/output.h"
#include "app/tasks/class_colours.h"
#include "app/tasks/segmentation/mask_predictor.h"
#include "app/tasks/segmentation/mask_report.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/source.h"
#include "mxtrain/ndarray/runtime.h"
#include "tests/support/naive_runtime.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::tasks {
namespace {

using Texts = std::vector<std::string>;

// Batches with a label of one class for each of 3x4 pixels.
class Labelled final : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {}; }
  std::vector<DataDesc> provide_label() const override { return {{"truth", {4, 3, 4}}}; }
  int64_t batch_size() const override { return 4; }
  int64_t batches_per_epoch() const override { return 1; }
  int64_t examples() const override { return 4; }
  std::string ExampleName(int64_t index) const override { return format("{}.png", index); }
  void Reset(int64_t, int64_t) override {}
  bool Next(DataBatch*) override { return false; }
  Stats stats() const override { return {}; }
};

Head MaskHead(const TShape& shape) {
  Head head;
  head.name = "pixels";
  head.label = "truth";
  LossReport::Head& loss = head.loss.emplace();
  loss.kind = LossReport::Head::Kind::kSoftmax;
  loss.label = head.label;
  head.shape = shape;
  head.facts.classes = {"sky", "road", "tree"};
  return head;
}

io::Image ClassesOfFile(const std::vector<float>& scores, const TShape& shape,
                        const io::PointMap& to_net, int height, int width) {
  io::Image mask;
  mask.Resize(height, width, 1);
  WriteClassesOfFile(scores, shape, to_net, {0, 0, height, width}, &mask);
  return mask;
}

// Of class `best` at every pixel: its plane is 0.75, the others less.
std::vector<float> ScoresOf(const std::vector<int>& best, size_t classes) {
  std::vector<float> scores(classes * best.size(), 0.125F);
  for (size_t i = 0; i < best.size(); ++i)
    scores[static_cast<size_t>(best[i]) * best.size() + i] = 0.75F;
  return scores;
}

}  // namespace

TEST_CASE("a mask has the size of its file, and no class where the net did not look") {
  const TShape shape{1, 3, 2, 3};
  const std::vector<int> classes = {0, 1, 2, 2, 1, 0};
  const std::vector<float> scores = ScoresOf(classes, 3);
  const io::Image same = ClassesOfFile(scores, shape, {}, 2, 3);
  CHECK(same.pixels == std::vector<uint8_t>{0, 1, 2, 2, 1, 0});
  // The net read the file at half of its size: between two centres the nearer pixel wins.
  const io::Image twice = ClassesOfFile(scores, shape, {0.5, 0, 0, 0, 0.5, 0}, 4, 6);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x)
      CHECK(twice.row(y)[x] == classes[static_cast<size_t>(y / 2 * 3 + x / 2)]);
  }
  // It read the middle of a larger file.
  const io::Image around = ClassesOfFile(scores, shape, io::PointMap::Shift(-1, -1), 4, 5);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) {
      const bool inside = y >= 1 && y < 3 && x >= 1 && x < 4;
      CHECK(around.row(y)[x] ==
            (inside ? classes[static_cast<size_t>((y - 1) * 3 + x - 1)] : io::kNoClass));
    }
  }
}

TEST_CASE("the prediction of a mask: parts, an indexed PNG, what is painted") {
  const auto task = TaskOf(MaskHead({1, 3, 2, 3}), "");
  REQUIRE(task);
  CHECK(task->kind() == "segmentation");
  CHECK(task->DefaultMetric().name == "mean_iou");
  const auto predictor = task->NewPredictor({});
  const std::vector<float> scores = ScoresOf({1, 1, 1, 1, 2, 2}, 3);
  const auto p = predictor->Predict(scores, {});
  CHECK(p->Text() == "road 0.6667  tree 0.3333");
  CHECK(p->Cells() == Texts{"road 0.6667;tree 0.3333"});
  CHECK(p->ToJson()["classes"][1]["class"] == "tree");
  CHECK(p->ToJson()["classes"][1]["index"] == 2);
  CHECK(p->ToJson()["width"] == 3);
  io::DecodeOptions stored;
  stored.as_stored = true;
  CHECK(io::DecodeImage(p->PredictedPng(), stored)->pixels ==
        std::vector<uint8_t>{1, 1, 1, 1, 2, 2});
  io::Image image;
  image.Resize(2, 3, 1);
  std::ranges::fill(image.pixels, uint8_t{100});
  p->DrawOn(&image);
  CHECK(image.channels == 3);
  CHECK(image.row(0)[0] == 114);  // half of 100 and half of 128
  CHECK(image.row(0)[1] == 50);
  std::vector<float> bad = scores;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  CHECK(predictor->Predict(bad, {})->Text() == "nan");
  CHECK(predictor->Predict(bad, {})->PredictedPng().empty());
  CHECK(predictor->Predict(bad, {})->ToJson().dump() == R"({"classes":null})");
  // As the VOC challenge has them.
  CHECK(ColourOfClass(0) == io::Rgb{0, 0, 0});
  CHECK(ColourOfClass(1) == io::Rgb{128, 0, 0});
  CHECK(ColourOfClass(11) == io::Rgb{192, 128, 0});
}

TEST_CASE("evaluation of masks is that of sets of pixels") {
  constexpr size_t kPixels = 12, kClasses = 3;
  Runtime runtime(test::NaiveOptions(), nullptr);
  const test::TempDir dir;
  MaskReport report(MaskHead({4, 3, 3, 4}), {"sky", "road", "tree"});
  report::ResultFile lines(dir.path("each.csv"));
  report.WriteEach({&lines, report::EachFormat::kCsv, false, true});
  const report::ImageReader reader({});
  report.KeepImages(2, reader);
  Labelled iter;
  std::vector<std::set<size_t>> truth(kClasses), guess(kClasses);
  double of_images = 0, right = 0, all = 0;
  std::vector<double> ious;
  for (uint64_t b = 0; b < 3; ++b) {
    std::vector<float> labels, scores;
    DataBatch batch;
    batch.count = b == 2 ? 3 : 4;
    for (size_t n = 0; n < 4; ++n) {
      std::vector<int> best;
      std::set<size_t> own_truth[kClasses], own_guess[kClasses];
      for (size_t i = 0; i < kPixels; ++i) {
        const uint64_t draw = PhiloxAt(9, b, n, i);
        // Tree is never true, and in the last image nothing is labelled.
        const bool none = draw % 5 == 0 || (b == 1 && n == 3);
        labels.push_back(none ? -1 : static_cast<float>(draw / 5 % 2));
        best.push_back(static_cast<int>(draw / 10 % (n == 0 ? 2 : 3)));
        if (none || n >= static_cast<size_t>(batch.count)) continue;
        const size_t pixel = (b * 4 + n) * kPixels + i;
        own_truth[static_cast<size_t>(labels.back())].insert(pixel);
        own_guess[static_cast<size_t>(best.back())].insert(pixel);
        all += 1, right += labels.back() == static_cast<float>(best.back()) ? 1 : 0;
      }
      const std::vector<float> own = ScoresOf(best, kClasses);
      scores.insert(scores.end(), own.begin(), own.end());
      if (n < static_cast<size_t>(batch.count))
        batch.index.push_back(static_cast<int64_t>(b * 4 + n));
      double sum = 0, count = 0;
      for (size_t k = 0; k < kClasses; ++k) {
        std::set<size_t> both = own_truth[k];
        both.insert(own_guess[k].begin(), own_guess[k].end());
        size_t common = 0;
        for (const size_t pixel : own_truth[k]) common += own_guess[k].contains(pixel);
        truth[k].insert(own_truth[k].begin(), own_truth[k].end());
        guess[k].insert(own_guess[k].begin(), own_guess[k].end());
        if (both.empty()) continue;
        sum += static_cast<double>(common) / static_cast<double>(both.size());
        count += 1;
      }
      if (count > 0) ious.push_back(sum / count);
    }
    batch.label.push_back(NDArray::FromVector(runtime, {4, 3, 4}, labels));
    const Examples examples(batch, iter, nullptr);
    report.Add(examples, {NDArray::FromVector(runtime, {4, 3, 3, 4}, scores)});
  }
  for (const double iou : ious) of_images += iou / static_cast<double>(ious.size());
  REQUIRE(ious.size() == 10);  // eleven, of which one has no class
  double sum = 0;
  const std::vector<MaskReport::Row> rows = report.Rows();
  for (size_t k = 0; k < kClasses; ++k) {
    std::set<size_t> both = truth[k];
    both.insert(guess[k].begin(), guess[k].end());
    double common = 0;
    for (const size_t pixel : truth[k]) common += guess[k].contains(pixel) ? 1 : 0;
    CHECK(rows[k].Iou() == doctest::Approx(common / static_cast<double>(both.size())));
    CHECK(rows[k].Dice() ==
          doctest::Approx(2 * common / static_cast<double>(truth[k].size() + guess[k].size())));
    sum += rows[k].Iou() / kClasses;
  }
  CHECK(std::isnan(rows[2].Recall()));
  CHECK(report.MeanIou() == doctest::Approx(sum));
  CHECK(report.MeanIouOfImages() == doctest::Approx(of_images));
  CHECK(report.PixelAccuracy() == doctest::Approx(right / all));
  Json json;
  report.AddTo(&json, 1, false);
  CHECK(json["masks"]["images"] == 10);
  CHECK(json["masks"]["worst"].size() == 1);
  CHECK(json["masks"]["worst"][0]["mean_iou"] ==
        doctest::Approx(*std::min_element(ious.begin(), ious.end())));
  CHECK(report.Text(2, false).find("road") != std::string::npos);
  lines.Finish();
  const std::string each = ReadFile(dir.path("each.csv"));
  CHECK(std::count(each.begin(), each.end(), '\n') == 12);  // a header and eleven images
  CHECK(each.find("7.png,,\n") != std::string::npos);       // no pixel has a class
}

}  // namespace mxtrain::tasks
