// SPDX-License-Identifier: Apache-2.0
// The objects in an image: a class and a box each. Labels are rows as in io/boxes.h.
#include <algorithm>

#include "app/tasks/detection/box_doctor.h"
#include "app/tasks/detection/box_folders.h"
#include "app/tasks/detection/box_predictor.h"
#include "app/tasks/detection/box_report.h"
#include "app/tasks/detection/found_boxes.h"
#include "app/tasks/detection/shape_boxes.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class DetectionTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override { return {"mean_ap", {}, "", ""}; }
  std::optional<Finding> CompareClasses(const std::vector<std::string>& classes) const override {
    const auto named = static_cast<int64_t>(classes.size());
    const int64_t own = head().box_classes;
    if (classes.empty() || own == 0 || own == named) return std::nullopt;
    const std::string text = format("'{}' has {} classes, but the data has {} ({})", head().name,
                                    own, named, FirstOf(classes, 12));
    if (own > named)
      return Finding{LogLevel::kWarning, text + "; the other outputs are unused", ""};
    return Finding{LogLevel::kError, text,
                   "set num_filter: \"${classes}\" in the layers of the scores to follow the data"};
  }
  std::vector<std::string> OddLabels(const io::Source& data, bool training) const override {
    const std::vector<io::FieldSpec>& fields = data.label_fields();
    // One label may have another name than the net's.
    const auto field = std::ranges::find_if(fields, [this, &fields](const io::FieldSpec& spec) {
      return (fields.size() == 1 || spec.name == head().label) &&
             spec.kind == io::FieldKind::kBoxes;
    });
    if (field == fields.end()) return {};
    return OddBoxes(data, static_cast<size_t>(field - fields.begin()), head().box_classes,
                    training);
  }
  void Show(std::span<const float> label, const TShape& shape,
            report::SheetImage* shown) const override {
    if (shape.ndim() != 3 || shape[2] < io::kBoxColumns) return;
    DrawObjects(ObjectsOf(label, static_cast<size_t>(shape[2])), ClassNames(head().facts.classes),
                &shown->image);
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    std::string text =
        "rows of class, score, left, top, right, bottom, in pixels of the input, the best first; "
        "rows of -1 are none";
    if (!head().facts.classes.empty())
      text += format("; classes from 0: {}", join(head().facts.classes, ", "));
    return OutputMeaning{"boxes", text};
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<BoxReport>(head(), head().facts.classes);
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& options) const override {
    const ClassNames known(head().facts.classes);
    std::vector<std::string> names = head().facts.classes;
    while (static_cast<int64_t>(names.size()) < head().box_classes)
      names.push_back(known[static_cast<int64_t>(names.size())]);
    return NewBoxPredictor(head().width(), options.threshold.value_or(kShownScore),
                           std::move(names));
  }
};

}  // namespace

MXTRAIN_TASK(detection_task, tasks) {
  TaskKind kind;
  kind.name = "detection";
  kind.help = "the objects in an image, a class and a box each";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    return head.gives_boxes ? std::make_unique<DetectionTask>(head) : nullptr;
  };
  kind.recognize = RecognizeBoxFolders;
  kind.synth = SynthesizeBoxes;
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
