// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `init --net` finds out about a net that comes with the program, and about a file of weights
// for it: the parts of a recipe that follow from them.
#include <optional>
#include <string>
#include <vector>

#include "app/commands/command.h"
#include "app/config/name_list.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::commands {

struct ZooNet {
  std::string name;
  int native = 0;         // edge of the images in its own configuration
  bool any_size = false;  // whether its parameters are the same for images of other sizes
  int train_size = 0, val_size = 0;
  bool smooths = false;  // whether vars.smoothing smooths its labels
  bool has_batch_norm = false;
  bool drops_paths = false;       // whether vars.stochastic_depth drops residual branches at random
  std::vector<std::string> head;  // patterns of the parameters that depend on the classes: fc_*
  std::string names;              // its list of names; "" for none
};

// `size`: the edge of training images; 0: five sevenths of the native one in a multiple of 32 (of a
// net with a variable `size`, which is that of training: as it is). Validation images have the edge
// that the net was published with where it was trained on smaller ones (the variable `val_size`),
// else they are larger by a sixth, since objects appear larger in random crops (Touvron et al.
// 2019, arXiv 1906.06423). Throws as config::NetFile, and kUsage for a size that is not the only
// one of the net.
ZooNet LookAtNet(const std::string& name, int size);

struct ZooWeights {
  // None: no family has these names. `of_run`: that of a run of this program, whose images and
  // variables it states.
  std::optional<config::WeightsFamily> family;
  bool of_run = false;
  bool own_names = false;               // the names of the arrays are the net's
  std::vector<std::string> candidates;  // other families with these names and the same preparation
  size_t fits = 0, wanted = 0;       // arrays of the net, without its head: in the file; in the net
  std::vector<std::string> missing;  // the others
};

// Which family a file of weights is of, and whether it fits the net. `family`: the one that the
// user says; "": told by the names of the arrays, or by a run or checkpoint itself. Throws as
// ReadWeights; kUsage for an unknown family, and if the names are those of families that prepare
// images differently; kConfig if more than a tenth of the net is not in the file.
ZooWeights LookAtWeights(Runtime& runtime, const ZooNet& net, const std::string& file,
                         const std::string& family, const std::string& state = "");

}  // namespace mxtrain::commands
