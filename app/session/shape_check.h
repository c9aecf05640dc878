// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the arrays of the data have the shapes that the net declares and its losses and metrics
// compare.
#include "app/session/session_view.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::session {

// Of batches of several sizes (train.multi_scale), the arrays of those that the net declares.
BatchArrays DeclaredArrays(const DataIter& iter, const config::Net& net);
// Whether the net accepts images of another height and width, [C, H, W], with the same parameters:
// convolutions and a global pooling do, a fully connected layer on pixels does not.
bool TakesSize(const config::Net& net, const config::NetInput& input, const TShape& size);

// Of the net's outputs on a batch of the data. Throws kConfig if the shapes contradict those of the
// data's labels or do not follow from them.
std::vector<TShape> OutputShapes(const DataIter& iter, const config::Net& net);
// `c`: where the data comes from. `training`: the shapes must be equal; else images may also be
// larger or smaller if the net accepts them. Throws DiagnosticError with all mismatches.
void CheckShapes(const DataIter& iter, const config::SourceConfig& c, bool training,
                 const SessionView& session);
// Labels that are images, against the outputs of the losses that compare them number by number.
// Throws DiagnosticError with all mismatches.
void CheckTargets(const DataIter& iter, const config::SourceConfig& c, const SessionView& session);
// Metrics of outputs that the net does not have, of labels that the data does not have, or of
// outputs and labels that do not fit each other. Throws DiagnosticError with all of them.
void CheckMetrics(const DataIter& iter, const SessionView& session);

}  // namespace mxtrain::session
