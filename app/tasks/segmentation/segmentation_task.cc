// SPDX-License-Identifier: Apache-2.0
// A class for each pixel of an image: semantic segmentation. Labels are class numbers [H, W], of
// which a negative one is none.
#include <algorithm>

#include "app/tasks/class_colours.h"
#include "app/tasks/segmentation/annotated_masks.h"
#include "app/tasks/segmentation/mask_folders.h"
#include "app/tasks/segmentation/mask_predictor.h"
#include "app/tasks/segmentation/mask_report.h"
#include "app/tasks/segmentation/shape_masks.h"
#include "app/tasks/side_by_side.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/source.h"

namespace mxtrain::tasks {
namespace {

class SegmentationTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override { return {"mean_iou", {}, "", ""}; }
  std::optional<Finding> CompareClasses(const std::vector<std::string>& classes) const override {
    const auto named = static_cast<int64_t>(classes.size());
    if (classes.empty() || !head().has_shape() || head().shape[1] == named) return std::nullopt;
    const std::string text = format("'{}' has {} classes, but the data has {} ({})", head().name,
                                    head().shape[1], named, FirstOf(classes, 12));
    if (head().shape[1] > named)
      return Finding{LogLevel::kWarning, text + "; the other outputs are unused", ""};
    return Finding{LogLevel::kError, text,
                   "set num_filter: \"${classes}\" in the layer before it to follow the data"};
  }
  std::vector<std::string> OddLabels(const io::Source& data, bool training) const override;
  void Show(std::span<const float> label, const TShape& shape,
            report::SheetImage* shown) const override {
    if (shape.ndim() != 3 || shape[1] != shown->image.height || shape[2] != shown->image.width)
      return;
    io::Image painted = shown->image;
    PaintClasses(ClassImage(label, shape[1], shape[2]), &painted);
    shown->image = Beside(shown->image, painted);
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    return MeaningOfClasses(head().facts.classes);
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<MaskReport>(head(), head().facts.classes);
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& /*options*/) const override {
    if (!head().has_shape() || head().shape[1] > io::kNoClass) return nullptr;
    return NewMaskPredictor(head().shape, head().facts.classes);
  }
};

// Masks are read as the pipeline reads them, so of a large data set only some are looked at.
std::vector<std::string> SegmentationTask::OddLabels(const io::Source& data, bool training) const {
  constexpr int64_t kLooks = 500;
  const std::vector<io::FieldSpec>& fields = data.label_fields();
  // One label may have another name than the net's.
  const auto field = std::ranges::find_if(fields, [this, &data](const io::FieldSpec& spec) {
    return (io::HasOneLabel(data) || spec.name == head().label) &&
           spec.kind == io::FieldKind::kMask;
  });
  if (field == fields.end() || !head().has_shape()) return {};
  const auto position = static_cast<size_t>(field - fields.begin());
  std::vector<int64_t> counts(256);
  int64_t empty = 0, beyond = 0, looked = 0;
  std::string first_empty, first_beyond;
  io::Sample sample;
  const int64_t step = std::max<int64_t>(1, data.size() / kLooks);
  for (int64_t i = 0; i < data.size(); i += step) {
    try {
      data.Read(i, &sample);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
      continue;  // bad examples are told of elsewhere
    }
    ++looked;
    std::vector<int64_t> own(256);
    for (const uint8_t k : sample.labels[position].classes.pixels) ++own[k];
    bool any = false, too_high = false;
    for (size_t k = 0; k < io::kNoClass; ++k) {
      counts[k] += own[k];
      any = any || own[k] > 0;
      too_high = too_high || (own[k] > 0 && static_cast<int64_t>(k) >= head().shape[1]);
    }
    if (!any && empty++ == 0) first_empty = data.Name(i);
    if (too_high && beyond++ == 0) first_beyond = data.Name(i);
  }
  std::vector<std::string> odd;
  const ClassNames names(head().facts.classes);
  std::vector<std::string> unseen;
  for (int64_t k = 0; k < std::min<int64_t>(head().shape[1], io::kNoClass); ++k) {
    if (counts[static_cast<size_t>(k)] == 0) unseen.push_back(format("'{}'", names[k]));
  }
  if (looked > 0 && empty == looked)
    return {format("none of the masks has a pixel of any class (first: {})", first_empty)};
  if (training && !unseen.empty()) {
    odd.push_back(format(
        "no pixel of {} {} in {}", unseen.size() == 1 ? "class" : "the classes", FirstOf(unseen, 8),
        looked == data.size() ? "the masks" : format("{} masks looked at", looked)));
  }
  if (empty > 0) {
    odd.push_back(
        format("{} without a pixel of any class (first: {})", Counted(empty, "mask"), first_empty));
  }
  if (beyond > 0) {
    odd.push_back(
        format("{} with a class of {} or more, which the net's {} outputs do not have (first: "
               "{}); pixels of no class are listed as mask_ignore",
               Counted(beyond, "mask"), head().shape[1], head().shape[1], first_beyond));
  }
  return odd;
}

}  // namespace

MXTRAIN_TASK(segmentation_task, tasks) {
  TaskKind kind;
  kind.name = "segmentation";
  kind.help = "one class of several for each pixel of an image";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    return head.gives_class_map() ? std::make_unique<SegmentationTask>(head) : nullptr;
  };
  kind.recognize = [](const RecipeRequest& request) {
    auto recipe = RecognizeMaskFolders(request);
    return recipe ? std::move(recipe) : RecognizeAnnotatedMasks(request);
  };
  kind.synth = SynthesizeMasks;
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
