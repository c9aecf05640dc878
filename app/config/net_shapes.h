// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks the shapes of a net's arrays before anything is bound.
#include "app/config/diagnostic.h"
#include "app/config/net.h"

namespace mxtrain::config {

// For a batch of `batch` examples: reports shapes that contradict each other or do not follow from
// those of the inputs, at their layer or Variable, else at `fallback`. The shape of a label that is
// not declared may be left to the data. That the sides of an image do not fit the points of a
// detector is reported at `input`. Warns if batches of another size do not fit the net, which
// can be trained all the same: tries `batch` + 1 and 1.
void CheckNetShapes(const Net& net, int64_t batch, const Place& input, const Place& fallback,
                    Diagnostics* diagnostics);

}  // namespace mxtrain::config
