// SPDX-License-Identifier: Apache-2.0
// One class of several for each example: classification.
#include <filesystem>

#include "app/tasks/classification/class_folders.h"
#include "app/tasks/classification/class_labels.h"
#include "app/tasks/classification/class_predictor.h"
#include "app/tasks/classification/class_report.h"
#include "app/tasks/classification/shape_folders.h"
#include "app/tasks/classification/text_class_recipe.h"
#include "app/tasks/image_table_recipe.h"
#include "app/tasks/table_recipe.h"
#include "app/tasks/task_list.h"

namespace mxtrain::tasks {
namespace {

class ClassificationTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override { return {"accuracy", {}, "", ""}; }
  std::optional<Finding> RefuseSets() const override {
    return Finding{LogLevel::kError,
                   "label_delim allows any number of classes, but SoftmaxOutput takes exactly one",
                   "end the net with LogisticRegressionOutput"};
  }
  std::optional<Finding> CompareClasses(const std::vector<std::string>& classes) const override {
    return CompareClassCount(head(), classes);
  }
  std::vector<std::string> OddLabels(const io::Source& data, bool training) const override {
    return training ? OddClasses(head(), data) : std::vector<std::string>();
  }
  void Show(std::span<const float> label, const TShape& /*shape*/,
            report::SheetImage* shown) const override {
    if (label.size() == 1 && label[0] >= 0)
      shown->lines.push_back(ClassNames(head().facts.classes)[static_cast<int64_t>(label[0])]);
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    return MeaningOfClasses(head().facts.classes);
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<ClassReport>(head(), head().facts.classes);
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& options) const override {
    return NewClassPredictor(head().width(), head().facts.classes, options.top_k,
                             options.threshold);
  }
};

}  // namespace

MXTRAIN_TASK(classification_task, tasks) {
  TaskKind kind;
  kind.name = "classification";
  kind.help = "one class of several for each example";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    const bool one = !head.has_shape() || (head.is_list() && head.has_rows());
    return head.gives_classes() && one ? std::make_unique<ClassificationTask>(head) : nullptr;
  };
  kind.recognize = [](const RecipeRequest& request) {
    if (auto folders = RecognizeClassFolders(request)) return folders;
    if (auto images = RecognizeImageTable(request, ImageTarget::kClasses)) return images;
    auto texts = request.target.empty() ? RecognizeClassTexts(request) : nullptr;
    std::error_code none;
    if (texts || !std::filesystem::is_regular_file(request.root, none)) return texts;
    return RecognizeTable(request, TableTarget::kClasses);
  };
  kind.recognizes_any = true;
  kind.recognizes_files = true;
  kind.synth = SynthesizeShapes;
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
