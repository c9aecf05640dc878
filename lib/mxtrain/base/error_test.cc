// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/error.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

namespace mxtrain {
namespace {

ErrorKind KindOf(const std::exception_ptr& error, const std::string& message) {
  try {
    RethrowWithPrefix(error, "layer 'fc1'");
  } catch (const Error& with_prefix) {
    CHECK(with_prefix.what() == "layer 'fc1': " + message);
    return with_prefix.kind();
  }
}

// "std::bad_alloc" was once all that a user saw.
TEST_CASE("out of memory says so and what to do, wherever it is caught") {
  const auto no_memory = std::make_exception_ptr(std::bad_alloc());
  const std::string text = "out of memory; make the batch smaller, or give the program more memory";
  CHECK(WhatOf(no_memory) == text);
  CHECK(KindOf(no_memory, text) == ErrorKind::kMemory);
  std::exception_ptr too_long;  // a length that no vector has is no lack of memory
  try {
    std::string(1, 'x').append(std::string::npos, 'x');
  } catch (...) {
    too_long = std::current_exception();
  }
  CHECK(KindOf(too_long, WhatOf(too_long)) == ErrorKind::kBug);
}

TEST_CASE("a prefix keeps the kind and the text of an error") {
  CHECK(WhatOf(nullptr) == "no error");
  CHECK(WhatOf(std::make_exception_ptr(7)) == "an exception of unknown type");
  CHECK(KindOf(std::make_exception_ptr(Error(ErrorKind::kData, "x.csv:1: no")), "x.csv:1: no") ==
        ErrorKind::kData);
  CHECK(KindOf(std::make_exception_ptr(std::runtime_error("why")), "why") == ErrorKind::kBug);
}

}  // namespace
}  // namespace mxtrain
