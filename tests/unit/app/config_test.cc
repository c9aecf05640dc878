// SPDX-License-Identifier: Apache-2.0
#include "config_test.h"

#include <unistd.h>

#include <fstream>

#include "shape_operators.h"

namespace mxtrain::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "mxtrain_config_XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary folder");
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  fs::remove_all(path_);
}

void TemporaryFolder::Write(const std::string& name, const std::string& text) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << text;
}

Outcome LoadAndBuild(const config::LoadRequest& request, const OperatorRegistry& registry) {
  Outcome outcome;
  outcome.sources = std::make_shared<config::SourceMap>();
  config::Diagnostics diagnostics(outcome.sources);
  try {
    outcome.loaded = config::LoadConfig(request, &diagnostics);
    outcome.net = config::BuildNet(
        outcome.loaded.config, registry,
        [](std::string_view name) {
          const bool counted = name == "classes" || name == "tokens";
          return counted ? std::optional<int64_t>(1000) : std::nullopt;
        },
        &diagnostics);
  } catch (const config::DiagnosticError&) {
  }
  outcome.diagnostics = diagnostics.Sorted();
  outcome.text = config::Render(outcome.diagnostics, *outcome.sources);
  return outcome;
}

Outcome LoadText(const std::string& text, std::vector<std::string> overrides) {
  TemporaryFolder folder;
  folder.Write("net.yaml", text);
  config::LoadRequest request;
  request.files = {"net.yaml"};
  request.overrides = std::move(overrides);
  request.working_folder = folder.path();
  request.environment = [](const std::string& name) {
    return name == "LEARNING_RATE" ? std::optional<std::string>("0.25") : std::nullopt;
  };
  return LoadAndBuild(request, *ShapeOperators());
}

Outcome BuildLayers(const std::string& layers, const std::string& more, const std::string& input) {
  return LoadText("net:\n  " + input + "\n  layers:\n" + layers +
                  "data: {train: {source: mnist, path: .}}\n" + more);
}

}  // namespace mxtrain::test
