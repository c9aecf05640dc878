// SPDX-License-Identifier: Apache-2.0
// Texts of the tree. One word per thing: terms that the style guide replaces by the field's own
// appear in no source, document, configuration or script. Links of documents lead somewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/build_paths.h"
#include "tests/support/temp_dir.h"

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
  return path.starts_with("tests/fuzz/corpus") || path == "tests/sources/vocabulary_test.cc";
}

std::vector<fs::path> AllTexts() {
  std::vector<fs::path> texts;
  const fs::path root = SourceDir();
  for (const char* top : {".github", "app", "lib", "configs", "tests", "scripts"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!entry.is_regular_file() || !IsText(entry.path())) continue;
      if (IsExempt(entry.path().lexically_relative(root).generic_string())) continue;
      texts.push_back(entry.path());
    }
  }
  texts.push_back(root / "README.md");
  texts.push_back(root / "data/README.md");  // what else is there belongs to users
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

// The lines of a Markdown file outside fenced blocks.
std::vector<std::string> ProseOf(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  bool fenced = false;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find_first_not_of(' ');
    const bool fence = first != std::string::npos && line.compare(first, 3, "```") == 0;
    if (fence) fenced = !fenced;
    lines.push_back(fence || fenced ? "" : line);
  }
  return lines;
}

// The anchors of a Markdown file's headings as GitHub names them: lower case, without punctuation,
// hyphens for spaces, numbered where a heading is repeated.
std::vector<std::string> AnchorsIn(const fs::path& path) {
  static const std::regex heading(R"(#{1,6}\s+(.*?)\s*#*)"), link(R"(\[([^\]]*)\]\([^)]*\))");
  std::vector<std::string> anchors;
  std::map<std::string, int> seen;
  for (const std::string& line : ProseOf(path)) {
    std::smatch match;
    if (!std::regex_match(line, match, heading)) continue;
    std::string anchor;
    for (const char c : std::regex_replace(match[1].str(), link, "$1")) {
      const unsigned char byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) || byte >= 0x80 || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(byte));
      else if (c == ' ')
        anchor += '-';
    }
    const int repeated = seen[anchor]++;
    anchors.push_back(repeated == 0 ? anchor : anchor + "-" + std::to_string(repeated));
  }
  return anchors;
}

// "LINE: TARGET: why" for each link or image of a Markdown file that leads to no file or heading.
// Addresses with a scheme (https:) are not followed. `seen` counts the others.
std::vector<std::string> BrokenLinks(const fs::path& path, int* seen) {
  static const std::regex target(
      R"re(\]\(\s*<?([^()\s>]+)>?(?:\s+"[^"]*")?\s*\)|^\s*\[[^\]]+\]:\s*<?([^\s>]+)|(?:src|href)="([^"]+)")re");
  static const std::regex code("`+[^`]*`+"), scheme("[a-zA-Z][a-zA-Z0-9+.-]*:.*");
  std::vector<std::string> broken;
  const std::vector<std::string> lines = ProseOf(path);
  for (size_t number = 0; number < lines.size(); ++number) {
    const std::string line = std::regex_replace(lines[number], code, "");
    for (std::sregex_iterator at(line.begin(), line.end(), target), end; at != end; ++at) {
      const std::string to = (*at)[1].str() + (*at)[2].str() + (*at)[3].str();
      if (std::regex_match(to, scheme)) continue;
      ++*seen;
      const size_t hash = to.find('#');
      const fs::path file = hash == 0 ? path : path.parent_path() / to.substr(0, hash);
      const auto report = [&](const std::string& why) {
        broken.push_back(std::to_string(number + 1) + ": " + to + ": " + why);
      };
      if (!fs::exists(file)) {
        report("no such file");
      } else if (hash != std::string::npos) {
        const std::vector<std::string> anchors = AnchorsIn(file);
        if (std::find(anchors.begin(), anchors.end(), to.substr(hash + 1)) == anchors.end())
          report("no such heading");
      }
    }
  }
  return broken;
}

TEST_CASE("links of documents lead to files and headings that exist") {
  int seen = 0;
  for (const fs::path& path : AllTexts()) {
    if (path.extension() != ".md") continue;
    for (const std::string& broken : BrokenLinks(path, &seen))
      FAIL_CHECK(path.lexically_relative(SourceDir()).generic_string() << ":" << broken);
  }
  CHECK(seen > 100);
}

TEST_CASE("broken links are found, and text that only looks like one is not") {
  const TempDir dir;
  dir.Write("other.md", "# One `two`, Three!\n## One\n## One\n```\n# no heading\n```\n");
  dir.Write("image.svg", "");
  dir.Write("page.md",
            "# Here\n"
            "[a](other.md), [`b`](other.md#one-two-three) ![c](image.svg \"title\") [d](#here)\n"
            "[e](https://example.org/none) [f](other.md#one-1) [g](.) `[h](none.md)`\n"
            "    std::sort(v, [&](auto a, auto b) { return a < b; });\n"
            "```\n[i](none.md)\n```\n"
            "[j](none.md) and ![k](none.png)\n"
            "[l](other.md#no-heading) [m](#there)\n"
            "[n]: none.md\n"
            "<img src=\"none.svg\">\n");
  int seen = 0;
  CHECK(BrokenLinks(dir.path("page.md"), &seen) ==
        std::vector<std::string>{"8: none.md: no such file", "8: none.png: no such file",
                                 "9: other.md#no-heading: no such heading",
                                 "9: #there: no such heading", "10: none.md: no such file",
                                 "11: none.svg: no such file"});
  CHECK(seen == 12);
}

}  // namespace
}  // namespace mxtrain::test
