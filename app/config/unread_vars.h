// SPDX-License-Identifier: Apache-2.0
#pragma once
// Variables that a configuration sets and nothing reads: misspelt ones.
#include <functional>
#include <set>
#include <string>

#include "app/config/diagnostic.h"
#include "app/config/value.h"

namespace mxtrain::config {

// `root`: the whole document, before expressions are evaluated. `declared`: the variables of
// included files and of the net that is used. What neither these nor an expression know is an error
// on the command line; where a file of the user's own, one for which `is_own` holds, has it, a
// warning if another name is near.
void ReportUnreadVars(const Value& root, const std::set<std::string>& declared,
                      const std::function<bool(const Place&)>& is_own, Diagnostics* diagnostics);

}  // namespace mxtrain::config
