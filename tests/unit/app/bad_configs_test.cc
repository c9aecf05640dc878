// Malformed configurations: tests/cli/bad_configs/NAME.yaml must give exactly the findings of NAME.txt, a line each, and no others. Where
// NAME.txt holds lines "help: ...", each finding must also give just these. A first line "# override: key=value" in the YAML stands for the
// command line.
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

// The first line of each finding, and its help in a line of its own.
std::string Heads(const Outcome& outcome, bool with_help) {
  std::string heads;
  for (const config::Diagnostic& finding : outcome.findings) {
    const std::string text = config::Render(finding, *outcome.sources);
    heads += text.substr(0, text.find('\n') + 1);
    if (with_help && !finding.help.empty()) heads += "help: " + finding.help + "\n";
  }
  return heads;
}

TEST_CASE("malformed configurations give the expected findings and no cascades") {
  const fs::path folder = SourceDir() / "tests" / "cli" / "bad_configs";
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml" && fs::exists(fs::path(entry.path()).replace_extension(".txt"))) files.push_back(entry.path());
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
    for (std::string line; std::getline(text, line) && line.starts_with("# override: ");) request.overrides.push_back(line.substr(12));
    const std::string expected = ReadFile(fs::path(file).replace_extension(".txt").string());
    CHECK(Heads(LoadAndBuild(request, *ShapeOperators()), expected.find("help: ") != std::string::npos) == expected);
  }
}

TEST_CASE("one finding to the letter") {
  const Outcome o = BuildLayers("    - Convolution: {num_filters: 20, kernel: 5}\n");
  CHECK(o.text ==
        "net.yaml:4:21: error: Convolution has no parameter 'num_filters'\n"
        "    4 |     - Convolution: {num_filters: 20, kernel: 5}\n"
        "      |                     ^~~~~~~~~~~\n"
        "      help: did you mean 'num_filter'? (required, integer >= 1: number of output channels)\n");
}

}  // namespace
}  // namespace mxtrain::test
