// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

constexpr const char* kOutOfMemory =
    "out of memory; make the batch smaller, or give the program more memory";

std::string WithEscapedNuls(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\0') {
      escaped += "\\x00";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(WithEscapedNuls(message)), kind_(kind) {}

std::string WhatOf(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void RethrowWithPrefix(std::exception_ptr error, const std::string& prefix) {
  ErrorKind kind = ErrorKind::kBug;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    kind = e.kind();
  } catch (const std::bad_alloc&) {
    kind = ErrorKind::kMemory;
  } catch (...) {
  }
  throw Error(kind, prefix + ": " + WhatOf(error));
}

namespace detail {
void AssertFailed(const char* condition, const char* file, int line) {
  throw Error(ErrorKind::kBug,
              fmt::format("{}:{}: internal check failed: {}", file, line, condition));
}
}  // namespace detail
}  // namespace mxtrain
