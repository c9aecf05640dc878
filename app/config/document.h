// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the files and overrides of a configuration into one tree of values with source places.
//
// Precedence: command line > later file > earlier file; a file > the files it includes. Maps of
// files merge key by key, everything else is replaced. A command line value replaces all that the
// files say of its key, also if it is a map: the keys of one data set or optimizer mean nothing to
// another. But a value for a section with a selector key (schema.h) that is no map sets that key
// and leaves the others. `${VAR}` and `${VAR:-default}` are read from the environment at once;
// other `${...}` are left for later evaluation (expression.h). Inside {...} and [...] YAML requires
// quotes around them, which do not make a number a text: {num_hidden: "${classes}"}.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/config/diagnostic.h"
#include "app/config/value.h"

namespace mxtrain::config {

struct LoadRequest {
  // The configuration, then those given by -c; a folder means the config.yaml in it.
  std::vector<std::string> files;
  // "train.optimizer.lr=0.1"; a list index is a key: "net.layers.0.Convolution.num_filter=8".
  std::vector<std::string> overrides;
  std::filesystem::path working_folder = std::filesystem::current_path();
  // The value of an environment variable. Empty: the process's own environment.
  std::function<std::optional<std::string>(const std::string& name)> environment;
};

// The merged tree, a map. Errors go to `diagnostics`; a text that is not YAML throws them at once,
// since nothing after it can be trusted. Throws kFileSystem for a file of the request that cannot
// be read; an unreadable included file is an error at its `include`.
Value LoadDocument(const LoadRequest& request, Diagnostics* diagnostics);

// The run folder of a file RUN/checkpoints/NAME, by its name; "" for others.
std::string RunOfCheckpoint(const std::string& file);

// One YAML text, already added to the source map as `file`. Throws DiagnosticError if it is
// malformed. An empty text is an empty map.
Value ParseYaml(int file, Diagnostics* diagnostics);

// A configuration that the program wrote itself: config.yaml of a run, or the copy in a checkpoint.
// Earlier versions wrote some ${...} without quotes; those are accepted. `name` is for messages.
// Throws DiagnosticError if the text is damaged.
Value ParseResolved(const std::string& name, const std::string& text);

}  // namespace mxtrain::config
