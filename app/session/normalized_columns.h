// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which columns of a table `normalize` standardizes.
#include <map>
#include <string>
#include <vector>

#include "app/session/session_view.h"
#include "mxtrain/base/standardization.h"
#include "mxtrain/io/source.h"

namespace mxtrain::session {

struct NormalizedColumn {
  bool standardized = false;
  ColumnTransform::Kind transform = ColumnTransform::kNone;  // before
};

// By field, an entry for each of its columns; a field without any is not in it. `targets`: labels
// that are numbers. Codes (FindCodeColumns), inputs of integers and missing(COLUMN) are never among
// them. Reports, as diagnostics, columns that there are not, codes that are named, quantiles of a
// label, a column with both transforms, and with `auto` inputs whose codes cannot be told from
// their numbers.
std::map<std::string, std::vector<NormalizedColumn>> NormalizedFields(
    const SessionView& session, const io::Source& training,
    const std::vector<std::string>& targets);

}  // namespace mxtrain::session
