// SPDX-License-Identifier: Apache-2.0
#pragma once
// scaled_dot_product_attention by matrix units that the host plays.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

void AddTileAttention(OperatorRegistry& registry);

}  // namespace mxtrain::test
