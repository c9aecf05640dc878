// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::test {

// Of a Runtime that runs every function when it is pushed, on one thread.
inline RuntimeOptions NaiveOptions() {
  RuntimeOptions options;
  options.engine = "naive";
  options.threads = 1;
  return options;
}

}  // namespace mxtrain::test
