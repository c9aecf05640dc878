// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters of which a batch reads a few rows: weights of embeddings with sparse_grad. Their
// gradient array holds zeros but for these rows, which the backward pass adds to and the update
// (rows = True) clears again, so that a step costs as much as the rows and not as the array.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/io/data_iter.h"
#include "mxtrain/train/bind_request.h"

namespace mxtrain {

struct RowsRead {
  std::string parameter;
  size_t input = 0;  // the array of the batch that lists the rows, among its data
};

// Of a net that reads `arrays` (data, then labels). Throws kConfig, with the layer, where the rows
// are not an input of the net or the weight is read otherwise too, and for what is not covered:
// GPUs, several workers, steps of several batches, mixed precision.
std::vector<RowsRead> FindRowsRead(const BindOptions& options, const Symbol& net,
                                   std::span<const DataDesc> arrays);

}  // namespace mxtrain
