// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training on examples with weights (io/example_weight.h). Every loss gets its arguments through
// an operator that multiplies their gradients by the weight of the example, so that the gradient of
// a batch is that of sum(w l), whatever the loss: with class weights, smoothing, a focal factor,
// ignored labels. It is then divided as without weights, by the number of examples of the batch (as
// Keras does; a mean by sum(w) would give steps of a batch that depend on which examples meet in
// it). Statistics of batch norm do not know the weights. The net of checkpoints and models is not
// changed.
#include "mxtrain/io/data_iter.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// Whether the batches say how much each example weighs.
MXTRAIN_API bool HasExampleWeights(const DataIter& iter);

// The net that a trainer binds to the batches of the iterator; `net` itself if they have no
// weights. Throws kConfig, naming the loss, where an argument of a loss is a parameter, which has
// no examples, or its leading axis is not that of examples, nor one that a reshape made of it and
// others behind it, so that the rows of an example are one below the other ([N * T, C] of
// [N, T, C]; not of [T, N, C]).
MXTRAIN_API Symbol WithExampleWeights(const OperatorRegistry& operators, const Symbol& net,
                                      const DataIter& iter);

}  // namespace mxtrain
