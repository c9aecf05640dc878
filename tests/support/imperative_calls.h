// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short forms of imperative calls, for tests.
#include <string_view>
#include <vector>

#include "mxtrain/operator/imperative.h"

namespace mxtrain::test {

inline NDArray One(std::string_view op, const std::vector<NDArray>& in, const Kwargs& kwargs = {}) {
  return Invoke(op, in, kwargs)[0];
}

inline NDArray Floats(Runtime& runtime, const std::vector<float>& values,
                      Context ctx = Context::cpu()) {
  return NDArray::FromVector(runtime, {static_cast<int64_t>(values.size())}, values, ctx);
}

}  // namespace mxtrain::test
