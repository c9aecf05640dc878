// SPDX-License-Identifier: Apache-2.0
#pragma once
// What looks wrong with labelled boxes. The data are only read.
#include <string>
#include <vector>

#include "mxtrain/io/source.h"

namespace mxtrain::tasks {

// A sentence for each kind of oddity, with how many there are and the first: boxes without an area
// or beyond the edges of their image, the same box twice, classes that a net of `classes` outputs
// does not have (0: not known), classes without an object (of training data), no objects at all.
// Sizes are read of some images of a large data set.
std::vector<std::string> OddBoxes(const io::Source& data, size_t position, int64_t classes,
                                  bool training);

}  // namespace mxtrain::tasks
