#pragma once
// The rows of a GPU that are written for teams, made for the host.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddTeamRows(OperatorRegistry& registry);

}  // namespace mxtrain::test
