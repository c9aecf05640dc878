// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the layers of a net cost: parameters and work, for `plan` and `nets`.
#include <cstdint>
#include <string>
#include <vector>

#include "app/session/session.h"
#include "mxtrain/base/shape.h"

namespace mxtrain::commands {

struct LayerCost {
  std::string name, op, where;
  std::vector<TShape> outputs;
  int64_t parameters = 0;
  double flops = 0;  // of a forward pass over the batch; a multiplication with its addition is two
};

// In the order of the graph; a shared weight counts once. The net of the session must be built.
std::vector<LayerCost> CostsOfLayers(const session::Session& session);

}  // namespace mxtrain::commands
