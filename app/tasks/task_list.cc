// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/task_list.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::tasks {
namespace {

TaskTable& TheTasks() {
  static TaskTable tasks = [] {
    TaskTable table;
    RegisterTasks(table);
    return table;
  }();
  return tasks;
}

// Throws kConfig, with the nearest name, if there is none.
const TaskKind& KindOf(std::string_view name) {
  if (const TaskKind* const kind = Tasks().Find(name)) return *kind;
  std::vector<std::string> names;
  for (const TaskKind& known : Tasks().kinds()) names.push_back(known.name);
  Throw(ErrorKind::kConfig, "there is no task '{}'{}; known are {}", name,
        DidYouMean(std::string(name), names), join(names, ", "));
}

}  // namespace

void TaskTable::Add(TaskKind kind) {
  if (Find(kind.name)) Throw(ErrorKind::kConfig, "there are two tasks of the name '{}'", kind.name);
  kinds_.insert(std::ranges::upper_bound(kinds_, kind.name, {}, &TaskKind::name), std::move(kind));
}

const TaskKind* TaskTable::Find(std::string_view name) const {
  const auto found = std::ranges::find(kinds_, name, &TaskKind::name);
  return found == kinds_.end() ? nullptr : &*found;
}

const TaskTable& Tasks() {
  return TheTasks();
}

void RegisterTask(TaskKind kind) {
  TheTasks().Add(std::move(kind));
}

std::unique_ptr<Task> TaskOf(const Head& head, std::string_view preferred) {
  std::vector<const TaskKind*> candidates;
  if (!preferred.empty()) candidates.push_back(&KindOf(preferred));
  for (const TaskKind& kind : Tasks().kinds()) {
    if (!kind.by_name_only) candidates.push_back(&kind);
  }
  for (const TaskKind* const kind : candidates) {
    std::unique_ptr<Task> task = kind->open(head);
    if (!task) continue;
    task->kind_ = kind->name;
    return task;
  }
  return nullptr;
}

std::vector<std::unique_ptr<Task>> TasksOf(const std::vector<Head>& heads,
                                           std::string_view preferred) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const Head& head : heads) {
    if (std::unique_ptr<Task> task = TaskOf(head, preferred)) tasks.push_back(std::move(task));
  }
  std::ranges::stable_sort(tasks, {}, &Task::kind);
  return tasks;
}

}  // namespace mxtrain::tasks
