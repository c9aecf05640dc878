// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the arrays of the data have the shapes that the net declares.
#include "app/commands/session_view.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::commands {

// `c`: where the data comes from. `training`: the shapes must be equal; else images may also be
// larger or smaller if the net accepts them. Throws DiagnosticError with all mismatches.
void CheckShapes(const DataIter& iter, const config::SourceConfig& c, bool training,
                 const SessionView& session);

}  // namespace mxtrain::commands
