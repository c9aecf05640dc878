// SPDX-License-Identifier: Apache-2.0
#include "app/commands/plugin_trust.h"

#include <algorithm>
#include <filesystem>

#include "app/config/document.h"
#include "app/report/output.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

// Whether one of `files` has the name of this file.
bool HasName(const std::vector<std::string>& files, const std::string& file) {
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).filename();
  };
  return std::any_of(files.begin(), files.end(),
                     [&](const std::string& other) { return name_of(other) == name_of(file); });
}

}  // namespace

void RequirePluginsNamed(const std::vector<std::string>& wanted,
                         const std::vector<std::string>& named, const std::string& file) {
  std::vector<std::string> missing, flags;
  for (const std::string& plugin : wanted) {
    if (HasName(named, plugin)) continue;
    missing.push_back(plugin);
    flags.push_back("--plugin " + report::QuoteShell(plugin));
  }
  if (missing.empty()) return;
  Throw(ErrorKind::kConfig,
        "{} was trained with the plug-in{} {}; plug-ins run arbitrary code, so those of a "
        "checkpoint are loaded only if you name them: {}",
        file, missing.size() > 1 ? "s" : "", join(missing, ", "), join(flags, " "));
}

std::vector<std::string> MergePlugins(const std::vector<std::string>& flags,
                                      const std::vector<std::string>& configured) {
  std::vector<std::string> merged;
  for (const std::string& plugin : flags)
    merged.push_back(std::filesystem::absolute(plugin).lexically_normal().string());
  for (const std::string& plugin : configured) {
    if (!HasName(flags, plugin)) merged.push_back(plugin);
  }
  return merged;
}

std::vector<std::string> PluginsOf(const std::string& config_text) {
  const config::Value root = config::ParseResolved("the model's configuration", config_text);
  std::vector<std::string> plugins;
  if (const config::Value* list = root.Get("plugins"); list && list->is_list()) {
    for (const config::Value& item : list->list) plugins.push_back(item.text);
  }
  return plugins;
}

}  // namespace mxtrain::commands
