// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the fuzz targets share. A target is a file that defines LLVMFuzzerTestOneInput and
// LargeInputs; libFuzzer (preset `fuzz`) or driver.cc (everywhere else) makes a program of it.
//
// A target gives the input to a reader of files from outside. Such a reader may refuse with an
// Error that blames the input. Whatever else happens is a fault: other exceptions, errors that
// speak of a bug or of memory, findings of a sanitizer, more memory or time than the input is
// worth.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/runtime.h"
#include "tests/support/temp_dir.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace mxtrain::fuzz {

// Inputs that are too large to be committed: those that once took time or memory by the square of
// their size. Read by driver.cc.
std::vector<std::string> LargeInputs();

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Runs a reader. Errors that blame the input are what it may throw.
template <typename Read>
void MayRefuse(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBug || error.kind() == ErrorKind::kMemory) throw;
  }
}

// One for all inputs: its engine runs every function where it is pushed, so that no input starts a
// thread.
inline Runtime& NaiveRuntime() {
  static Runtime runtime(
      [] {
        RuntimeOptions options;
        options.engine = "naive";
        options.threads = 1;
        return options;
      }(),
      nullptr);
  return runtime;
}

// A folder for readers that open files by themselves, used again for every input.
inline const test::TempDir& Scratch() {
  static const test::TempDir folder;
  return folder;
}

}  // namespace mxtrain::fuzz
