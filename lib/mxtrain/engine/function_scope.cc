// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/function_scope.h"

#include "mxtrain/base/error.h"

namespace mxtrain::engine {
namespace {
thread_local FunctionScope* innermost = nullptr;
}

FunctionScope::FunctionScope(const Engine* engine) : engine_(engine), outer_(innermost) {
  innermost = this;
}
FunctionScope::~FunctionScope() {
  innermost = outer_;
}

bool FunctionScope::Inside(const Engine* engine) {
  for (const FunctionScope* scope = innermost; scope; scope = scope->outer_) {
    if (scope->engine_ == engine) return true;
  }
  return false;
}

void RefuseInsideFunction(const Engine* engine, const char* what) {
  if (!FunctionScope::Inside(engine)) return;
  Throw(ErrorKind::kBug,
        "{} was called inside an engine function: it would wait for itself; push a function that "
        "names the variable instead",
        what);
}

}  // namespace mxtrain::engine
