// SPDX-License-Identifier: Apache-2.0
#pragma once
// A net that comes with the program, and a file of weights for it, as far as a recipe depends on
// them.
#include <optional>
#include <string>
#include <vector>

#include "app/config/name_list.h"

namespace mxtrain::tasks {

struct ZooNet {
  std::string name;
  int native = 0;         // edge of the images in its own configuration
  bool any_size = false;  // whether its parameters are the same for images of other sizes
  int train_size = 0, val_size = 0;
  bool smooths = false;  // whether vars.smoothing smooths its labels
  bool has_batch_norm = false;
  bool has_features = false;  // whether its last layer reads a row for each image (net.until)
  bool has_strides = false;   // whether it says which layers a decoder takes (net.decoder)
  bool drops_paths = false;   // whether vars.stochastic_depth drops residual branches at random
  // Of a whole detector, else empty: what its own configuration does to images in validation, as
  // lines of YAML; their size is then vars.size.
  std::vector<std::string> transforms;
  std::vector<std::string> head;  // patterns of the parameters that depend on the classes: fc_*
  std::string names;              // its list of names; "" for none

  bool finds_boxes() const { return !transforms.empty(); }
};

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

// The weights as the configuration names them.
struct WeightsChoice {
  std::string file, sha256;  // no file: from scratch; no sha256: not pinned
  std::string state;         // train.weights.state
  ZooWeights facts;
  bool head_only = false;  // train only the head, on features
};

}  // namespace mxtrain::tasks
