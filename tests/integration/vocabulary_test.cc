// SPDX-License-Identifier: Apache-2.0
// One word per thing: terms that the style guide replaces by the field's own appear in no source,
// document, configuration or script.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

struct Term {
  const char* pattern;  // ECMAScript, ignoring case
  const char* say;
  std::vector<std::string> allowed;  // a line that holds one of these is fine
};

// Only terms that are wrong wherever they appear. Words with a second, proper meaning (row, form,
// cut, finish) are left to reviewers.
const std::vector<Term> kTerms = {
    {"pictur", "image", {"picture_fields", "\"pictures\""}},
    {"master form", "canonical layout", {}},
    {"begins? anew|began anew|begun anew", "is re-initialized", {}},
    {"reference system", "MXNet", {}},
    {"\\bGPU half|\\bhalf for NVIDIA", "CUDA backend", {}},
    {"outer ?arrays?", "external buffers", {}},
    {"derived arrays?", "precomputed parameters", {}},
    {"recorded pass|recorded kernels|RecordedKernels|whole_passes", "captured graph", {}},
    {"no number any more|is no number\\b", "non-finite, or what it is", {}},
    {"gone on with|goes on with|go on with", "continue", {}},
    {"nothing is to do", "no action needed", {}},
    {"how gradients meet", "gradient aggregation", {}},
    {"\\bPlanRow|\\bReferenceRow|\\bAddRows?\\b|\\bLastRow\\b",
     "KernelEntry and its kin",
     {"`PlanRow` is", "`ReferenceRow` is"}},
    {"way of a picture|way of an image", "data augmentation chain", {}},
};

bool IsText(const fs::path& path) {
  static const std::vector<std::string> extensions = {".h",   ".cc",   ".cu", ".cuh",   ".in",
                                                      ".md",  ".yaml", ".sh", ".cmake", ".py",
                                                      ".txt", ".json", ".svg"};
  const std::string extension = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

bool IsExempt(const std::string& path) {
  return path.starts_with("tests/fuzz/corpus") || path == "tests/integration/vocabulary_test.cc";
}

std::vector<fs::path> AllTexts() {
  std::vector<fs::path> texts;
  const fs::path root = SourceDir();
  for (const char* top : {"app", "lib", "configs", "data", "tests", "scripts"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !IsText(entry.path())) continue;
      if (IsExempt(entry.path().lexically_relative(root).generic_string())) continue;
      texts.push_back(entry.path());
    }
  }
  texts.push_back(root / "README.md");
  texts.push_back(root / "CMakeLists.txt");
  return texts;
}

bool Allowed(const Term& term, const std::string& line) {
  return std::any_of(term.allowed.begin(), term.allowed.end(),
                     [&](const std::string& text) { return line.find(text) != std::string::npos; });
}

TEST_CASE("no text uses a word that the style guide replaces") {
  const std::vector<fs::path> texts = AllTexts();
  REQUIRE(texts.size() > 500);
  std::vector<std::regex> patterns;
  for (const Term& term : kTerms) {
    patterns.emplace_back(term.pattern,
                          std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
  }
  int hits = 0;
  for (const fs::path& path : texts) {
    std::ifstream in(path);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      for (size_t t = 0; t < kTerms.size(); ++t) {
        if (!std::regex_search(line, patterns[t]) || Allowed(kTerms[t], line)) continue;
        ++hits;
        MESSAGE(path.lexically_relative(SourceDir()).generic_string(), ":", number, ": say '",
                std::string(kTerms[t].say), "': ", line);
      }
    }
  }
  CHECK(hits == 0);
}

}  // namespace
}  // namespace mxtrain::test
