// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `init --net` finds out about a net that comes with the program, and about a file of weights
// for it: the parts of a recipe that follow from them.
#include <string>

#include "app/commands/command.h"
#include "app/tasks/published_net.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::commands {

using tasks::WeightsChoice;
using tasks::ZooNet;
using tasks::ZooWeights;

// `size`: the edge of training images; 0: five sevenths of the native one in a multiple of 32 (of a
// net with a variable `size`, which is that of training: as it is). Validation images have the edge
// that the net was published with where it was trained on smaller ones (the variable `val_size`),
// else they are larger by a sixth, since objects appear larger in random crops (Touvron et al.
// 2019, arXiv 1906.06423). Throws as config::NetFile, and kUsage for a size that is not the only
// one of the net.
ZooNet LookAtNet(const std::string& name, int size);

// Which family a file of weights is of, and whether it fits the net. `family`: the one that the
// user says; "": told by the names of the arrays, or by a run or checkpoint itself. Throws as
// ReadWeights; kUsage for an unknown family, and if the names are those of families that prepare
// images differently; kConfig if more than a tenth of the net is not in the file.
ZooWeights LookAtWeights(Runtime& runtime, const ZooNet& net, const std::string& file,
                         const std::string& family, const std::string& state = "");

}  // namespace mxtrain::commands
