// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/inference/open_model.h"
#include "app/inference/prediction_sinks.h"
#include "app/session/head_tasks.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"

namespace mxtrain::inference {

std::vector<PredictedHead> PredictedHeadsOf(const Model& model, const session::PipelineSpec& run,
                                            int64_t batch, const tasks::PredictionOptions& options,
                                            const Logger& log) {
  std::vector<PredictedHead> heads;
  std::vector<std::string> others;
  std::string first;
  for (const tasks::Head& head : session::HeadsOf(model, run, ShapesOf(model, batch))) {
    if (head.is_value_of_loss()) continue;
    const std::unique_ptr<tasks::Task> task = tasks::TaskOf(head, run.task);
    std::shared_ptr<const tasks::Predictor> predictor =
        task ? task->NewPredictor(options) : nullptr;
    if (predictor) {
      heads.push_back({head.name, head.output, std::move(predictor)});
      continue;
    }
    const TShape of_example(
        std::span(head.shape.begin() + 1, static_cast<size_t>(head.shape.ndim() - 1)));
    if (first.empty()) first = head.name;
    others.push_back(format("'{}' gives {} for an example", head.name, of_example.ToString()));
  }
  const std::string advice = format("--output-layer {} --output FILE.npy writes it as numbers",
                                    first.empty() ? "NAME" : first);
  if (heads.empty() && others.empty()) {
    Throw(ErrorKind::kUsage,
          "{}: the net outputs only the value of its loss, no prediction; write the output of a "
          "layer with --output-layer NAME --output FILE.npy",
          model.file);
  }
  if (heads.empty())
    Throw(
        ErrorKind::kUsage,
        "{}: {}, which is neither class scores, nor a short list of values, nor an image that the "
        "net learned to predict; {}",
        model.file, join(others, ", "), advice);
  if (!others.empty())
    log.Write(LogLevel::kInfo, format("skipped: {}; {}", join(others, ", "), advice));
  return heads;
}

}  // namespace mxtrain::inference
