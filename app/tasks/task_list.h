// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds of tasks, by name. Each is declared once, in the folder of its own; which one a head
// has is told by its loss, or by the configuration (`task: NAME`).
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/tasks/recipe.h"
#include "app/tasks/task.h"

namespace mxtrain::tasks {

struct TaskKind {
  std::string name;  // as a configuration and `synth --task` name it
  std::string help;  // what is learned, as a noun: "one class of several"
  // Only for heads of a configuration that names it: its heads look like those of another task.
  bool by_name_only = false;
  // The task of a head; null if it is not of this kind.
  std::function<std::unique_ptr<Task>(const Head& head)> open;
  // For `init`: what lies in a folder, if it is data of this kind; null if not. Empty: it never is.
  std::function<std::unique_ptr<Recipe>(const RecipeRequest& request)> recognize;
  // What it recognizes may be a file.
  bool recognizes_files = false;
  // It takes folders of any names, so that other kinds are asked first.
  bool recognizes_any = false;
  // For `synth`: makes examples. Empty: it makes none.
  std::function<SynthResult(const SynthRequest& request)> synth;
};

class TaskTable {
 public:
  // Throws kConfig if there is one of that name.
  void Add(TaskKind kind);
  // Sorted by name.
  const std::vector<TaskKind>& kinds() const { return kinds_; }
  const TaskKind* Find(std::string_view name) const;  // null if there is none

 private:
  std::vector<TaskKind> kinds_;
};

// Those of the program, and what RegisterTask added.
const TaskTable& Tasks();
// A kind of another program's: before the first configuration is read, from one thread. Throws as
// TaskTable::Add.
void RegisterTask(TaskKind kind);
// Generated from the folders here.
void RegisterTasks(TaskTable& tasks);

// At the end of the file of a task, whose name is the id:
//
//   MXTRAIN_TASK(regression_task, tasks) { tasks.Add(...); }
//
// The build finds it at the beginning of a line and generates the list of calls.
#define MXTRAIN_TASK(id, tasks)                                    \
  extern "C" void mxtrain_task_##id(::mxtrain::tasks::TaskTable&); \
  extern "C" void mxtrain_task_##id(::mxtrain::tasks::TaskTable& tasks)

// The task of a head: of `preferred`, the kind that the configuration names ("" for none), if the
// head is of it; else of the first kind that it is of. Null if it is of none, as the value of a
// loss. Throws kConfig, with the nearest name, for an unknown kind.
std::unique_ptr<Task> TaskOf(const Head& head, std::string_view preferred);
// Of all heads, without those of none, ordered by kind and output.
std::vector<std::unique_ptr<Task>> TasksOf(const std::vector<Head>& heads,
                                           std::string_view preferred);

}  // namespace mxtrain::tasks
