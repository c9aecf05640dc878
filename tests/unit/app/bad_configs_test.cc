// SPDX-License-Identifier: Apache-2.0
// Malformed configurations: tests/cli/bad_configs/NAME.yaml must give exactly the diagnostics of
// NAME.txt, one per line. If NAME.txt contains lines "help: ...", the help texts must match too. A
// first line "# override: key=value" in the YAML is a command line override.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "config_test.h"
#include "mxtrain/base/file.h"
#include "shape_operators.h"
#include "tests/support/build_paths.h"

namespace mxtrain::test {
namespace {

namespace fs = std::filesystem;

// The first line of each diagnostic, and its help on a separate line.
std::string Heads(const Outcome& outcome, bool with_help) {
  std::string heads;
  for (const config::Diagnostic& diagnostic : outcome.diagnostics) {
    const std::string text = config::Render(diagnostic, *outcome.sources);
    heads += text.substr(0, text.find('\n') + 1);
    if (with_help && !diagnostic.help.empty()) heads += "help: " + diagnostic.help + "\n";
  }
  return heads;
}

TEST_CASE("malformed configurations give the expected diagnostics and no cascades") {
  const fs::path folder = SourceDir() / "tests" / "cli" / "bad_configs";
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml" &&
        fs::exists(fs::path(entry.path()).replace_extension(".txt")))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 140);
  for (const fs::path& file : files) {
    CAPTURE(file.filename().string());
    config::LoadRequest request;
    request.files = {file.filename().string()};
    request.working_folder = folder;
    request.environment = [](const std::string&) { return std::nullopt; };
    std::istringstream text(ReadFile(file.string()));
    for (std::string line; std::getline(text, line) && line.starts_with("# override: ");)
      request.overrides.push_back(line.substr(12));
    const std::string expected = ReadFile(fs::path(file).replace_extension(".txt").string());
    CHECK(Heads(LoadAndBuild(request, *ShapeOperators()),
                expected.find("help: ") != std::string::npos) == expected);
  }
}

TEST_CASE("the exact text of one diagnostic") {
  const Outcome o = BuildLayers("    - Convolution: {num_filters: 20, kernel: 5}\n");
  CHECK(o.text ==
        "net.yaml:4:21: error: Convolution has no parameter 'num_filters'\n"
        "    4 |     - Convolution: {num_filters: 20, kernel: 5}\n"
        "      |                     ^~~~~~~~~~~\n"
        "      help: did you mean 'num_filter'? (required, integer >= 1: number of output "
        "channels)\n");
}

}  // namespace
}  // namespace mxtrain::test
