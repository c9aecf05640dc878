#pragma once
// A thread's mark that it runs functions of an engine: a wait under the mark would wait for itself and is refused.
#include "mxtrain/base/macros.h"

namespace mxtrain::engine {

class Engine;

class FunctionScope {
 public:
  explicit FunctionScope(const Engine* engine);
  ~FunctionScope();
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

  // True on a thread that is inside a scope of `engine`.
  static MXTRAIN_API bool Inside(const Engine* engine);

 private:
  const Engine* engine_;
  FunctionScope* outer_;
};

// Throws kBug when the calling thread is inside a function of `engine`; `what` is the call that is refused. For whoever waits after a push:
// the wait would refuse as well, but what was pushed would run.
MXTRAIN_API void RefuseInsideFunction(const Engine* engine, const char* what);

}  // namespace mxtrain::engine
