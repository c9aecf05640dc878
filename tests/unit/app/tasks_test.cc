// SPDX-License-Identifier: Apache-2.0
// Which task a head has, and what tasks answer.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "app/tasks/image_to_image/image_report.h"
#include "app/tasks/image_to_image/planes.h"
#include "app/tasks/recipe.h"
#include "app/tasks/side_by_side.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "tests/support/error_message.h"

namespace mxtrain::tasks {
namespace {

using Kind = LossReport::Head::Kind;
using Texts = std::vector<std::string>;

Head WithLoss(Kind kind, const TShape& shape) {
  Head head;
  head.name = "out";
  head.label = "out_label";
  LossReport::Head& loss = head.loss.emplace();
  loss.name = "out";
  loss.label = "out_label";
  loss.kind = kind;
  head.shape = shape;
  return head;
}

Head WithoutLoss(const std::string& op, const TShape& shape) {
  Head head;
  head.name = "out";
  head.op = op;
  head.shape = shape;
  return head;
}

std::string KindOf(const Head& head, const std::string& preferred = "") {
  const auto task = TaskOf(head, preferred);
  return task ? task->kind() : "";
}

std::unique_ptr<Predictor> PredictorOf(const Head& head, const PredictionOptions& options = {}) {
  return TaskOf(head, "")->NewPredictor(options);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("the task of a head follows from its loss and its shape; every form is of one kind") {
  CHECK(KindOf(WithLoss(Kind::kSoftmax, {8, 3})) == "classification");
  CHECK(KindOf(WithLoss(Kind::kSoftmax, {8, 3, 5, 5})) == "segmentation");
  CHECK(KindOf(WithoutLoss("softmax", {8, 3, 5, 5})) == "segmentation");
  CHECK(KindOf(WithLoss(Kind::kSoftmax, {8, 3, 5})) == "");  // a class at each place of a sequence
  Head rows = WithLoss(Kind::kSoftmax, {40, 3});  // of five rows for each of eight examples
  CHECK(KindOf(rows) == "classification");
  rows.inputs = {{8, 5}};
  CHECK(KindOf(rows) == "");
  Head computed = WithLoss(Kind::kUnknown, {8, 3});
  computed.label = "";
  computed.op = "SoftmaxOutput";
  CHECK(KindOf(computed) == "classification");
  CHECK(KindOf(WithLoss(Kind::kSoftmax, TShape())) == "classification");  // before shapes are known
  CHECK(KindOf(WithLoss(Kind::kLogistic, {8, 3})) == "multilabel");
  CHECK(KindOf(WithLoss(Kind::kLinear, {8, 1})) == "regression");
  CHECK(KindOf(WithLoss(Kind::kLinear, {8, 6, 2})) == "regression");
  CHECK(KindOf(WithLoss(Kind::kLinear, {8, 3, 4, 5})) == "image_to_image");
  CHECK(KindOf(WithLoss(Kind::kAbsolute, {8, 1, 4, 5})) == "image_to_image");
  CHECK(KindOf(WithLoss(Kind::kLinear, {8, 2, 4, 5})) == "regression");  // neither gray nor RGB
  CHECK(KindOf(WithLoss(Kind::kLinear, TShape())) == "regression");
  Head loss_alone = WithLoss(Kind::kMean, {1});
  loss_alone.label = "";
  CHECK(KindOf(loss_alone) == "");
  CHECK(KindOf(WithoutLoss("softmax", {8, 3})) == "classification");
  CHECK(KindOf(WithoutLoss("FullyConnected", {8, 3})) == "regression");
  Head named = WithoutLoss("FullyConnected", {8, 3});
  named.facts.all_classes = {"a", "b", "c"};
  CHECK(KindOf(named) == "classification");
  // Of all kinds that are not chosen by name, one takes it.
  for (const Head& head : {WithLoss(Kind::kSoftmax, {8, 3}), WithLoss(Kind::kSoftmax, {8, 3, 4, 4}),
                           WithLoss(Kind::kLogistic, {8, 3, 4, 4}),
                           WithLoss(Kind::kLinear, {8, 3, 4, 5}), WithLoss(Kind::kLinear, {8, 1}),
                           WithoutLoss("softmax", {8, 3}), WithoutLoss("", {8, 3, 4, 4})}) {
    int64_t takers = 0;
    for (const TaskKind& kind : Tasks().kinds())
      takers += !kind.by_name_only && kind.open(head) != nullptr ? 1 : 0;
    CHECK(takers == 1);
  }
}

TEST_CASE("a task by name is taken where it fits, and must exist") {
  CHECK(KindOf(WithLoss(Kind::kLinear, {8, 1}), "classification") == "regression");
  CHECK(test::MessageOf([] {
          KindOf(WithLoss(Kind::kLinear, {8, 1}), "regresion");
        }).find("there is no task 'regresion'; did you mean 'regression'?") == 0);
}

TEST_CASE("default metrics") {
  const auto metric = [](const Head& head) { return TaskOf(head, "")->DefaultMetric().name; };
  CHECK(metric(WithLoss(Kind::kSoftmax, {8, 3})) == "accuracy");
  CHECK(metric(WithLoss(Kind::kLogistic, {8, 3})) == "multilabel_accuracy");
  CHECK(metric(WithLoss(Kind::kLinear, {8, 3})) == "rmse");
  CHECK(metric(WithLoss(Kind::kAbsolute, {8, 3})) == "mae");
  CHECK(metric(WithLoss(Kind::kLinear, {8, 3, 4, 4})) == "mse");
  CHECK(metric(WithLoss(Kind::kAbsolute, {8, 3, 4, 4})) == "mae");
}

TEST_CASE("a prediction of one class: text, cells, JSON, folders") {
  Head head = WithLoss(Kind::kSoftmax, {8, 3});
  head.facts.classes = {"ant", "bee"};  // the third has no name
  const auto predictor = PredictorOf(head, {.top_k = 2, .threshold = {}});
  CHECK(predictor->Columns() == Texts{"predicted", "score", "predicted_2", "score_2"});
  const std::vector<float> scores = {0.25F, 0.25F, 0.5F};
  const auto p = predictor->Predict(scores, {});
  CHECK(p->Text() == "2 0.5000  ant 0.2500");  // of equal scores the first class
  CHECK(p->Cells() == Texts{"2", "0.5", "ant", "0.25"});
  CHECK(
      p->ToJson().dump() ==
      R"({"predictions":[{"class":"2","index":2,"score":0.5},{"class":"ant","index":0,"score":0.25}]})");
  CHECK(p->Caption() == "2 0.500");
  CHECK(p->Folders(0.5) == Texts{"2"});
  CHECK(p->Folders(0.6).empty());
  const std::vector<float> bad = {kNan, 0, 1};
  const auto none = predictor->Predict(bad, {});
  CHECK(none->Text() == "nan");
  CHECK(none->Cells() == Texts{"", "nan", "", "nan"});
  CHECK(none->ToJson().dump() == R"({"predictions":null})");
  CHECK(none->Folders(0).empty());
  CHECK(predictor->MayBeUnsure(0.1));
  CHECK_FALSE(predictor->MayBeUnsure(0));
}

TEST_CASE("a prediction of a set of classes: those from the threshold on, best first") {
  Head head = WithLoss(Kind::kLogistic, {8, 3});
  head.facts.all_classes = {"ant", "bee", "cat"};
  const auto predictor = PredictorOf(head, {.threshold = 0.25});
  const std::vector<float> scores = {0.25F, 0.125F, 0.75F};
  const auto p = predictor->Predict(scores, {});
  CHECK(p->Cells() == Texts{"cat;ant", "0.75;0.25"});
  CHECK(p->Text() == "cat 0.7500  ant 0.2500");
  CHECK(p->Folders(0) == Texts{"cat", "ant"});
  CHECK(p->Folders(0.5) == Texts{"cat"});
  const std::vector<float> low = {0, 0, 0};
  CHECK(predictor->Predict(low, {})->Text() == "-");
}

TEST_CASE("predicted values have the units and the names of the label") {
  Head head = WithLoss(Kind::kLinear, {8, 2});
  head.facts.columns = {"width", "height"};
  head.facts.units = Standardization{{10, 20}, {2, 4}};
  const auto predictor = PredictorOf(head);
  CHECK(predictor->Columns() == Texts{"predicted_width", "predicted_height"});
  const std::vector<float> values = {1, -1};
  const auto p = predictor->Predict(values, {});
  CHECK(p->Text() == "width 12  height 16");
  CHECK(p->Cells() == Texts{"12", "16"});
  CHECK(p->numbers()[1] == 16);
  CHECK(PredictorOf(WithLoss(Kind::kLinear, {8, 300})) == nullptr);         // too long a list
  CHECK(PredictorOf(WithLoss(Kind::kSoftmax, {8, 256, 4, 4})) == nullptr);  // no byte for the last
}

TEST_CASE("predicted images: planes of 0 to 1 become pixels") {
  const auto predictor = PredictorOf(WithLoss(Kind::kLinear, {8, 3, 1, 2}));
  CHECK(predictor == nullptr);  // one row is no image
  const auto images = PredictorOf(WithLoss(Kind::kLinear, {8, 1, 2, 2}));
  CHECK(images->abilities().images);
  const std::vector<float> planes = {-1, 0.5F, 1, 2};
  const auto image = io::DecodeImage(images->Predict(planes, {})->PredictedPng());
  REQUIRE(image);
  CHECK(image->pixels == std::vector<uint8_t>{0, 128, 255, 255});
  const std::vector<float> bad = {kNan, 0, 0, 0};
  CHECK(images->Predict(bad, {})->PredictedPng().empty());
  const io::Image both = Beside(*image, ImageOfPlanes(planes, {1, 1, 2, 2}));
  CHECK(both.width == 5);  // a white line between them
  CHECK(both.pixels == std::vector<uint8_t>{0, 128, 255, 0, 128, 255, 255, 255, 255, 255});
  CHECK(PeakSignalToNoise(0.01) == doctest::Approx(20));
  CHECK(std::isinf(PeakSignalToNoise(0)));
}

TEST_CASE("a gray image beside a coloured one becomes RGB; what is missing below is black") {
  io::Image gray, red;
  gray.Resize(1, 1, 1);
  gray.pixels = {7};
  red.Resize(2, 1, 3);
  red.pixels = {255, 0, 0, 254, 0, 0};
  const io::Image both = Beside(gray, red);
  CHECK(both.height == 2);
  CHECK(both.pixels == std::vector<uint8_t>{7, 7, 7, 255, 255, 255, 255, 0, 0,  //
                                            0, 0, 0, 255, 255, 255, 254, 0, 0});
}

TEST_CASE("sets of classes are for LogisticRegressionOutput alone") {
  CHECK(TaskOf(WithLoss(Kind::kSoftmax, {8, 3}), "")->RefuseSets());
  CHECK(TaskOf(WithLoss(Kind::kLinear, {8, 3}), "")->RefuseSets());
  CHECK_FALSE(TaskOf(WithLoss(Kind::kLogistic, {8, 3}), "")->RefuseSets());
}

TEST_CASE("the classes of the data against those of a head") {
  const auto task = TaskOf(WithLoss(Kind::kSoftmax, {8, 2}), "");
  CHECK_FALSE(task->CompareClasses({}));
  CHECK_FALSE(task->CompareClasses({"a", "b"}));
  CHECK(task->CompareClasses({"a", "b", "c"})->level == LogLevel::kError);
  CHECK(task->CompareClasses({"a"})->level == LogLevel::kWarning);
}

}  // namespace mxtrain::tasks
