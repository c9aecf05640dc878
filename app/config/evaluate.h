// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expressions (expression.h) of a configuration, evaluated with errors reported at their places.
#include <map>
#include <string>
#include <vector>

#include "app/config/diagnostic.h"
#include "app/config/expression.h"

namespace mxtrain::config {

// Names that mean these constants, which must outlive it.
Names NamesOf(const std::map<std::string, Constant>& constants);
// The values of `vars`, in order; each may use those above it; null removes a variable of an
// included file. Errors go to `diagnostics`.
std::map<std::string, Constant> EvaluateVars(const Value& vars, Diagnostics* diagnostics);
// A scalar as a constant of an expression.
Constant ToConstant(const Value& scalar);
// Expand (expression.h) that reports errors at the scalar's place. False after an error.
bool ExpandAt(Value* scalar, const Names& names, Diagnostics* diagnostics,
              const std::vector<std::string>& notes = {});

}  // namespace mxtrain::config
