// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data that are not part of the project. The cases that need them are in a doctest suite named
// after them and are marked `doctest::skip()`:
//
//   TEST_CASE("the real MNIST" * doctest::test_suite("mnist") * doctest::skip()) {
//     const auto folder = test::DataDir("mnist");
//     if (!folder) return;
//
// so the executable alone leaves them out, and counts them as skipped. mxtrain_data_test in
// tests/CMakeLists.txt makes an entry of each suite, which ctest shows as skipped without the data.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"

namespace mxtrain::test {

// Whether a case found no data; support/main.cc turns it into the exit code. Only the thread that
// runs the cases may write it.
inline bool data_missing = false;

// A case without its data ends after this.
inline void SkipWithoutData(const std::string& why) {
  MESSAGE("skipped: ", why);
  data_missing = true;
}

// The folder of a data set ("mnist", "clothing/validation"): in MXTRAIN_DATA_DIR; if that is not
// set, in data/ of the source tree or in ../shared/data. Without it the case is skipped.
inline std::optional<std::string> DataDir(const std::string& name) {
  const char* given = std::getenv("MXTRAIN_DATA_DIR");
  const std::filesystem::path root = SourceDir();
  const std::vector<std::filesystem::path> bases =
      given && *given ? std::vector<std::filesystem::path>{given}
                      : std::vector<std::filesystem::path>{root / "data", root / "../shared/data"};
  for (const std::filesystem::path& base : bases) {
    std::error_code ignored;
    const std::filesystem::path folder = base / name;
    if (std::filesystem::is_directory(folder, ignored) &&
        !std::filesystem::is_empty(folder, ignored))
      return folder.string();
  }
  SkipWithoutData("no " + name + "; set MXTRAIN_DATA_DIR to the folder that holds it");
  return std::nullopt;
}

// MXTRAIN_REFERENCE_DIR, the folder of what MXNet computed. Without it the case is skipped.
inline std::optional<std::string> ReferenceDir() {
  if (const char* folder = std::getenv("MXTRAIN_REFERENCE_DIR"); folder && *folder) return folder;
  SkipWithoutData(
      "MXTRAIN_REFERENCE_DIR is not set; tests/reference/make_reference_nets.py makes its files");
  return std::nullopt;
}

}  // namespace mxtrain::test
