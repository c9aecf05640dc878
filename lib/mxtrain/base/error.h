// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failures that stop the work are exceptions of one type, Error, whose kind determines the exit
// code of the program. Expected outcomes are values (base/expected.h); bugs of this library are
// MXTRAIN_ASSERT.
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/base/macros.h"

namespace mxtrain {

// The number is the program's exit code for an uncaught error of that kind.
enum class ErrorKind : int {
  kBug = 1,
  kUsage = 2,
  kConfig = 3,
  kData = 4,
  kDevice = 5,
  kMemory = 6,
  kDiverged = 7,
  kFileSystem = 8,
  kCheckFailed = 9,
};

// What failed, on what, what was expected, what to do. Thread-safe to copy and rethrow.
class MXTRAIN_API Error : public std::runtime_error {
 public:
  // A NUL in the message, as from a cell of a binary file, becomes "\x00": what() would end there.
  Error(ErrorKind kind, const std::string& message);
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Contradictory shapes or types, invalid parameters: kConfig.
template <typename... Args>
[[noreturn]] void Throw(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

// Rethrows `error` with "PREFIX: " before its message. The kind is kept (kBug for exceptions other
// than Error).
[[noreturn]] MXTRAIN_API void RethrowWithPrefix(std::exception_ptr error,
                                                const std::string& prefix);
// The message of an exception, whatever its type.
MXTRAIN_API std::string WhatOf(const std::exception_ptr& error);

namespace detail {
[[noreturn]] MXTRAIN_API void AssertFailed(const char* condition, const char* file, int line);
}
}  // namespace mxtrain

// Checks an invariant of this library. Enabled in every build: a wrong answer costs more than a
// branch.
#define MXTRAIN_ASSERT(condition)         \
  (static_cast<bool>(condition) ? void(0) \
                                : ::mxtrain::detail::AssertFailed(#condition, __FILE__, __LINE__))
