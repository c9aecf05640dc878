// SPDX-License-Identifier: Apache-2.0
#pragma once
// Marks a thread as running functions of an engine: a wait there would wait for itself and is
// rejected.
#include "mxtrain/base/macros.h"

namespace mxtrain::engine {

class Engine;

class FunctionScope {
 public:
  explicit FunctionScope(const Engine* engine);
  ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

  // Whether the calling thread is inside a scope of `engine`.
  static MXTRAIN_API bool Inside(const Engine* engine);

 private:
  const Engine* engine_;
  FunctionScope* outer_;
};

// Throws kBug when the calling thread is inside a function of `engine`; `what` names the rejected
// call. For functions that push and then wait: the wait would throw too, but only after the push.
MXTRAIN_API void RefuseInsideFunction(const Engine* engine, const char* what);

}  // namespace mxtrain::engine
