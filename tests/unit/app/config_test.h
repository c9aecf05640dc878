// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the tests of app/config: a temporary folder of files, and loading of a configuration.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/config/load.h"
#include "app/config/net.h"

namespace mxtrain::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

struct Outcome {
  config::LoadedConfig loaded;
  config::Net net;
  std::vector<config::Diagnostic> diagnostics;
  std::shared_ptr<config::SourceMap> sources;
  std::string text;  // of all diagnostics
};

// Loads and builds; 1000 classes. Invalid YAML is also reported in `diagnostics`.
Outcome LoadAndBuild(const config::LoadRequest& request, const OperatorRegistry& registry);
// One text as "net.yaml", with overrides.
Outcome LoadText(const std::string& text, std::vector<std::string> overrides = {});
// A valid configuration with these layers (a YAML list, indented by four) and optional top-level
// keys after them.
Outcome BuildLayers(const std::string& layers, const std::string& more = "",
                    const std::string& input = "input: [3, 8, 8]");

}  // namespace mxtrain::test
