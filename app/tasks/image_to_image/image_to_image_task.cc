// SPDX-License-Identifier: Apache-2.0
// An image for each example: denoising, colouring, depth. Label and prediction are pixel / 255.
#include <algorithm>

#include "app/tasks/image_to_image/image_report.h"
#include "app/tasks/image_to_image/planes.h"
#include "app/tasks/side_by_side.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class ImagePrediction final : public HeadPrediction {
 public:
  ImagePrediction(std::span<const float> planes, const TShape& shape)
      : planes_(planes), shape_(shape) {}

  std::span<const float> numbers() const override { return planes_; }
  std::string Text() const override {
    return IsFinite(planes_) ? format("an image of {}x{} pixels", shape_[3], shape_[2]) : "nan";
  }
  std::vector<std::string> Cells() const override { return {}; }
  Json ToJson() const override {
    if (!IsFinite(planes_)) return {{"image", nullptr}};
    return {{"image", {{"channels", shape_[1]}, {"height", shape_[2]}, {"width", shape_[3]}}}};
  }
  std::string Caption() const override { return ""; }
  std::string PredictedPng() const override {
    return IsFinite(planes_) ? io::EncodePng(ImageOfPlanes(planes_, shape_)) : "";
  }

 private:
  const std::span<const float> planes_;
  const TShape& shape_;
};

class ImagePredictor final : public Predictor {
 public:
  explicit ImagePredictor(const TShape& shape) : shape_(shape) {}

  Abilities abilities() const override { return {.images = true, .draws = false, .placed = true}; }
  int64_t width() const override { return shape_.Product(1, shape_.ndim()); }
  std::vector<std::string> Columns() const override { return {}; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& /*example*/) const override {
    return std::make_unique<ImagePrediction>(values, shape_);
  }
  std::string HowNotFinite() const override { return "no image is written"; }

 private:
  const TShape shape_;
};

class ImageToImageTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override {
    return {head().loss->kind == LossReport::Head::Kind::kAbsolute ? "mae" : "mse", {}, "", ""};
  }
  void Show(std::span<const float> label, const TShape& shape,
            report::SheetImage* shown) const override {
    if (shape.ndim() == 4) shown->image = Beside(shown->image, ImageOfPlanes(label, shape));
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    return OutputMeaning{"images", format("'{}' is an image, [channels, height, width] of pixel / "
                                          "255",
                                          head().name)};
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<ImageReport>(head());
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& /*options*/) const override {
    return std::make_unique<ImagePredictor>(head().shape);
  }
};

}  // namespace

MXTRAIN_TASK(image_to_image_task, tasks) {
  TaskKind kind;
  kind.name = "image_to_image";
  kind.help = "an image for each example";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    using Kind = LossReport::Head::Kind;
    const bool fits = head.loss && !head.label.empty() && head.gives_image() &&
                      (head.loss->kind == Kind::kLinear || head.loss->kind == Kind::kAbsolute);
    return fits ? std::make_unique<ImageToImageTask>(head) : nullptr;
  };
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
