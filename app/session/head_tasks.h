// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tasks of the heads of a net: of a configuration, or of a model by what it says of its data. A
// head has the label of its loss; one without such a loss, that which a metric compares it with.
#include <memory>
#include <string>
#include <vector>

#include "app/session/pipeline_spec.h"
#include "app/session/session_view.h"
#include "app/tasks/task.h"
#include "mxtrain/train/model.h"

namespace mxtrain::session {

// Of the heads with a label. Before the training set is open, nothing is known about labels: `data`
// is empty then. Throws kConfig for an unknown `task`.
std::vector<std::unique_ptr<tasks::Task>> TasksOf(const SessionView& session,
                                                  const std::vector<std::string>& class_names = {},
                                                  const PipelineSpec& data = {});

// Reports `task: NAME` where there is no such task, or no head of the net is of it.
void CheckTask(const SessionView& session);

// The heads of a model. `shapes`: as far as they can be inferred.
std::vector<tasks::Head> HeadsOf(const Model& model, const PipelineSpec& run,
                                 const Symbol::Shapes& shapes);

}  // namespace mxtrain::session
