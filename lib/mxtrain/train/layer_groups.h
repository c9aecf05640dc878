// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parameters of a net in groups from its input to its head: the steps in which learning rates
// decay with depth (BEiT, Bao et al. 2021, arXiv 2106.08254).
#include <set>
#include <string>
#include <vector>

#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

struct LayerGroup {
  std::string name;  // common to its layers: "stage1_unit0", "fc"
  std::vector<std::string> parameters;
};

// `inputs`: the variables that hold examples; `labels`: others that are no parameters. A group is a
// part of the net between two places where one array holds everything that later layers read of the
// examples; neighbours whose names agree up to their last number ("stage1_unit0_...") are one. A
// group without weights, such as a batch norm or a position embedding, belongs to the one before
// it. From the input to the head.
MXTRAIN_API std::vector<LayerGroup> LayerGroups(const Symbol& net,
                                                const std::set<std::string>& inputs,
                                                const std::set<std::string>& labels);

}  // namespace mxtrain
