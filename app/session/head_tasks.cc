// SPDX-License-Identifier: Apache-2.0
#include "app/session/head_tasks.h"

#include <algorithm>

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

}  // namespace

std::vector<std::unique_ptr<tasks::Task>> TasksOf(const SessionView& session,
                                                  const std::vector<std::string>& class_names,
                                                  const PipelineSpec& data) {
  const config::Net& net = session.net;
  const int64_t batch = std::max(session.config().data.batch_size, 1);  // 0: not chosen yet
  const Symbol::Shapes shapes = net.symbol.InferShape(config::BatchShapes(net, batch));
  std::vector<tasks::Head> heads =
      tasks::HeadsOf(net.symbol, shapes.complete ? shapes.outputs : std::vector<TShape>());
  for (tasks::Head& head : heads) head.facts = FactsOf(head.label, heads, class_names, data);
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
                              format("no loss of the net is of the task {} ({})", name, kind.help),
                              "remove the line");
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session.diagnostics.Error(session.loaded.PlaceOf("task"), e.what());
  }
}

std::vector<tasks::Head> HeadsOf(const Model& model, const PipelineSpec& run,
                                 const std::vector<TShape>& shapes) {
  std::vector<tasks::Head> heads = tasks::HeadsOf(model.symbol, shapes);
  for (tasks::Head& head : heads) {
    if (!head.loss) {
      const auto metric = std::ranges::find_if(run.metrics, [&head](const MetricSpec& spec) {
        return HeadName(spec.output) == head.name;
      });
      if (metric != run.metrics.end()) head.label = metric->label;
    }
    head.facts = FactsOf(head.label, heads, model.info.class_names, run);
  }
  return heads;
}

}  // namespace mxtrain::session
