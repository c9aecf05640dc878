// SPDX-License-Identifier: Apache-2.0
#include "app/session/head_tasks.h"

#include <algorithm>

#include "app/session/train_options.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/error.h"

namespace mxtrain::session {
namespace {

// `classes`: those that the data names. They are of the label if no loss of the net has another.
tasks::LabelFacts FactsOf(const std::string& label, const std::vector<tasks::Head>& heads,
                          const std::vector<std::string>& classes, const PipelineSpec& data) {
  tasks::LabelFacts facts{data.ClassesOf(label), classes, data.ColumnsOf(label),
                          data.UnitsOf(label)};
  const bool other_label = std::ranges::any_of(heads, [&label](const tasks::Head& other) {
    return other.loss && !other.label.empty() && other.label != label;
  });
  if (facts.classes.empty() && !other_label) facts.classes = classes;
  return facts;
}

// The one place that binds labels to heads.
std::vector<tasks::Head> BoundHeads(const Symbol& net, const Symbol::Shapes& shapes,
                                    const std::vector<std::string>& inputs,
                                    const std::vector<MetricSpec>& metrics,
                                    const std::vector<std::string>& classes,
                                    const PipelineSpec& data) {
  std::vector<tasks::Head> heads = tasks::HeadsOf(net, shapes, inputs);
  for (tasks::Head& head : heads) {
    const auto metric = std::ranges::find_if(metrics, [&head](const MetricSpec& spec) {
      return !spec.output.empty() && HeadName(spec.output) == head.name && !spec.label.empty();
    });
    if (!head.label.empty() || head.is_value_of_loss() || metric == metrics.end()) continue;
    head.label = metric->label;
    head.label_shape = tasks::ShapeOf(net, shapes, head.label);
  }
  for (tasks::Head& head : heads) head.facts = FactsOf(head.label, heads, classes, data);
  return heads;
}

}  // namespace

std::vector<std::unique_ptr<tasks::Task>> TasksOf(const SessionView& session,
                                                  const std::vector<std::string>& class_names,
                                                  const PipelineSpec& data) {
  const config::Net& net = session.net;
  const int64_t batch = std::max(session.config().data.batch_size, 1);  // 0: not chosen yet
  std::vector<std::string> inputs;
  for (const config::NetInput& input : net.inputs) inputs.push_back(input.name);
  std::vector<tasks::Head> heads =
      BoundHeads(net.symbol, net.symbol.InferShape(config::BatchShapes(net, batch)), inputs,
                 MetricsOf(session.config().train), class_names, data);
  std::erase_if(heads, [](const tasks::Head& head) { return head.label.empty(); });
  return tasks::TasksOf(heads, session.config().task);
}

void CheckTask(const SessionView& session) {
  const std::string& name = session.config().task;
  if (name.empty()) return;
  try {
    const auto all = TasksOf(session);
    const tasks::TaskKind& kind = *tasks::Tasks().Find(name);
    if (std::ranges::any_of(
            all, [&kind](const auto& task) { return kind.open(task->head()) != nullptr; }))
      return;
    session.diagnostics.Error(session.loaded.PlaceOf("task"),
                              format("no head of the net is of the task {} ({})", name, kind.help),
                              "remove the line");
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session.diagnostics.Error(session.loaded.PlaceOf("task"), e.what());
  }
}

std::vector<tasks::Head> HeadsOf(const Model& model, const PipelineSpec& run,
                                 const Symbol::Shapes& shapes) {
  std::vector<std::string> inputs;
  for (const InputInfo& input : model.info.inputs) inputs.push_back(input.name);
  return BoundHeads(model.symbol, shapes, inputs, run.metrics, model.info.class_names, run);
}

}  // namespace mxtrain::session
