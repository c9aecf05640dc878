// SPDX-License-Identifier: Apache-2.0
// Which token of a text comes next.
#include "app/tasks/language_model/text_recipe.h"
#include "app/tasks/language_model/text_report.h"
#include "app/tasks/language_model/token_scores.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class LanguageModelTask final : public Task {
 public:
  LanguageModelTask(Head head, const TokenLayout& layout)
      : Task(std::move(head)), tokens_(layout.tokens) {}

  MetricSpec DefaultMetric() const override { return {"perplexity", {}, "", ""}; }
  std::optional<Finding> CompareClasses(const std::vector<std::string>& classes) const override {
    const auto named = static_cast<int64_t>(classes.size());
    if (classes.empty() || tokens_ == named) return std::nullopt;
    const std::string text = format("'{}' gives scores of {} tokens, but the tokenizer has {}",
                                    head().name, tokens_, named);
    if (tokens_ > named) return Finding{LogLevel::kWarning, text + "; the others are unused", ""};
    return Finding{LogLevel::kError, text,
                   "set num_hidden: \"${classes}\" in the layer before it, and input_dim of the "
                   "Embedding, to follow the data"};
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<TextReport>(head());
  }
  // `generate` writes text; `infer` has nothing to write.
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& /*options*/) const override {
    return nullptr;
  }

 private:
  const int64_t tokens_;
};

}  // namespace

MXTRAIN_TASK(language_model_task, tasks) {
  TaskKind kind;
  kind.name = "language_model";
  kind.help = "the next token of a text";
  kind.by_name_only = true;
  kind.recognize = RecognizeTexts;
  kind.recognizes_files = true;
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    const TShape& shape = head.shape;
    if (head.gives_classes() && shape.known() && shape.ndim() == 3 && shape[1] == shape[2] &&
        head.label_shape == TShape{shape[0], shape[1]}) {
      Throw(
          ErrorKind::kConfig,
          "'{}' gives {}: with as many tokens as an example is long, which axis is that of tokens "
          "cannot be told; use another length",
          head.name, shape.ToString());
    }
    const auto layout =
        head.gives_classes() ? TokenLayoutOf(head.shape, head.label_shape) : std::nullopt;
    return layout ? std::make_unique<LanguageModelTask>(head, *layout) : nullptr;
  };
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
