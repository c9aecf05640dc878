// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of the engine share.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::test {

using Vars = std::vector<engine::VarHandle>;

inline constexpr const char* kEngineTypes[] = {"naive", "threaded"};

// An engine of `type` for the CPU.
inline std::unique_ptr<engine::Engine> MakeEngine(const std::string& type, int workers = 1) {
  engine::EngineOptions options;
  options.type = type;
  options.cpu_workers = workers;
  return engine::Create(std::move(options));
}

// For functions that fail: throws an Error of kind kData.
[[noreturn]] inline void Fail(const char* what) {
  Throw(ErrorKind::kData, "{}", what);
}

}  // namespace mxtrain::test
