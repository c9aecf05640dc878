#pragma once
// Reads the files and overrides of a configuration into one tree of values that know their places.
//
// Command line > later file > earlier file; a file > what it includes. Maps merge key by key, everything else is replaced; a value on the
// command line for a section that it may stand for (schema.h) sets that key of it and leaves the others. `${VAR}` and
// `${VAR:-default}` read the environment at once; other `${...}` stay for whoever knows the names (expression.h), and may stand bare in
// flow maps: {num_hidden: ${classes}}.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/config/diagnostic.h"
#include "app/config/value.h"

namespace mxtrain::config {

struct LoadRequest {
  std::vector<std::string> files;      // the configuration, then those given by -c; a folder stands for the config.yaml in it
  std::vector<std::string> overrides;  // "train.optimizer.lr=0.1"; a list index is a key: "net.layers.0.Convolution.num_filter=8"
  std::filesystem::path working_folder = std::filesystem::current_path();
  // The value of an environment variable. Empty: the process's own environment.
  std::function<std::optional<std::string>(const std::string& name)> environment;
};

// The merged tree, a map. Findings go to `diagnostics`; a text that is not YAML throws them at once, since nothing after it can be trusted.
// A file of the request that cannot be read throws kFileSystem; one that is included is a finding at its `include`.
Value LoadDocument(const LoadRequest& request, Diagnostics* diagnostics);

// One YAML text, already added to the source map as `file`. Damage is thrown as DiagnosticError. An empty text is an empty map.
Value ParseYaml(int file, Diagnostics* diagnostics);

}  // namespace mxtrain::config
