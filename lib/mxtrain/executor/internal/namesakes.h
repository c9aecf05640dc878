// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers belong to the name of the node that draws them. Nets of one Runtime may have nodes
// of the same names: each net draws numbers of its own, by how many that draw under the name were
// bound before it. So draws depend on what a program binds, in which order, and on nothing else.
#include <map>

#include "mxtrain/executor/kernels.h"

namespace mxtrain::executor {

// The name under which a node of the graph draws: a backward pass and a recomputation repeat the
// draws of the first run.
const std::string& DrawnAs(const ExecGraph& graph, const ExecNode& node);

// Of the nodes of a net that is being bound; `shared`: of an executor with the same parameters,
// which is the same net, or null.
Namesakes NumberNamesakes(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                          const BindRequest& request, const Namesakes* shared);

}  // namespace mxtrain::executor
