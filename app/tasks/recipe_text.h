// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the configurations that recipes write.
#include <string>

#include "app/tasks/published_net.h"

namespace mxtrain::tasks {

// A line of YAML with its comment in a column of its own; "" for none.
std::string TextLine(std::string text, const std::string& comment);

// The transform `normalize` as a net with published weights needs it; as most need it, for a net
// without (`from_weights` false).
std::string NormalizeText(const ZooWeights& weights, bool from_weights);

}  // namespace mxtrain::tasks
