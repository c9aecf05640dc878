// SPDX-License-Identifier: Apache-2.0
// What is written in an image of a line of text. Labels are letters, numbered from 1, and 0 after
// the last one; the head is ctc_greedy_decoder beside CTCLoss, with the blank first.
#include <algorithm>

#include "app/tasks/task_list.h"
#include "app/tasks/text_lines/drawn_lines.h"
#include "app/tasks/text_lines/line_predictor.h"
#include "app/tasks/text_lines/line_recipe.h"
#include "app/tasks/text_lines/line_report.h"
#include "app/tasks/text_lines/said_text.h"
#include "mxtrain/base/format.h"
#include "mxtrain/io/example_weight.h"

namespace mxtrain::tasks {
namespace {

class TextLinesTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override { return {"cer", {}, "", ""}; }
  std::vector<std::string> OddLabels(const io::Source& data, bool training) const override;
  void Show(std::span<const float> label, const TShape& /*shape*/,
            report::SheetImage* shown) const override {
    shown->lines.push_back(format("{}", join(LettersOfLabel(label, head().facts.classes), "")));
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    std::string text =
        "rows of the class of a letter and its probability, in the order of the text; rows of -1 "
        "are none";
    if (!head().facts.classes.empty())
      text += format("; letters from class 1: {}", join(head().facts.classes, ""));
    return OutputMeaning{"text", text};
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<LineReport>(head(), head().facts.classes);
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& /*options*/) const override {
    if (!head().has_shape()) return nullptr;
    return NewLinePredictor(head().width(), head().facts.classes);
  }
};

// CTCLoss needs a step for each letter, and one between two equal ones.
std::vector<std::string> TextLinesTask::OddLabels(const io::Source& data, bool training) const {
  const std::vector<io::FieldSpec>& fields = data.label_fields();
  const auto field = std::ranges::find_if(fields, [this, &data](const io::FieldSpec& spec) {
    return (io::HasOneLabel(data) || spec.name == head().label) &&
           spec.kind == io::FieldKind::kValues && spec.shape.ndim() == 1;
  });
  if (field == fields.end() || !head().has_shape()) return {};
  const auto position = static_cast<size_t>(field - fields.begin());
  const int64_t steps = head().shape[1];
  int64_t longer = 0;
  std::string first;
  io::Sample scratch;
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::span<const float> label = data.LabelOf(i, position, &scratch);
    int64_t needed = 0;
    for (size_t k = 0; k < label.size() && label[k] >= 1; ++k)
      needed += k > 0 && label[k] == label[k - 1] ? 2 : 1;
    if (needed > steps && longer++ == 0) first = data.Name(i);
  }
  if (longer == 0) return {};
  return {
      format("{} with more letters than '{}' has steps, {}, counting one more between equal "
             "letters; {} (first: {})",
             Counted(longer, "text"), head().name, steps,
             training ? "nothing is learnt of them: a wider input has more steps"
                      : "they cannot be read whole",
             first)};
}

}  // namespace

MXTRAIN_TASK(text_lines_task, tasks) {
  TaskKind kind;
  kind.name = "text_lines";
  kind.help = "what is written in an image of a line of text";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    const bool fits = head.has_shape() && head.shape.ndim() == 3 && head.shape[2] == 2;
    if (head.op != "ctc_greedy_decoder" || !fits) return nullptr;
    return std::make_unique<TextLinesTask>(head);
  };
  kind.recognize = RecognizeLines;
  kind.recognizes_files = true;
  kind.synth = SynthesizeLines;
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
