#pragma once
// The kernels of a GPU that are written for teams, made for the host; in three files, since each kernel is a template of many types.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddSimpleTeamRows(OperatorRegistry& registry);  // element by element, reductions, views
void AddLayerTeamRows(OperatorRegistry& registry);
void AddUpdateTeamRows(OperatorRegistry& registry);  // of weights

}  // namespace mxtrain::test
