#pragma once
// What the tests of app/config share: a folder of files that is gone afterwards, and a configuration read to the end.
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
  std::vector<config::Diagnostic> findings;
  std::shared_ptr<config::SourceMap> sources;
  std::string text;  // of all findings
};

// Loads and builds; 1000 classes. Damaged YAML shows in `findings` as well.
Outcome LoadAndBuild(const config::LoadRequest& request, const OperatorRegistry& registry);
// One text as "net.yaml", with overrides.
Outcome LoadText(const std::string& text, std::vector<std::string> overrides = {});
// A configuration that is good but for these layers (a YAML list, indented by four) and what may follow at top level.
Outcome BuildLayers(const std::string& layers, const std::string& more = "", const std::string& input = "input: [3, 8, 8]");

}  // namespace mxtrain::test
