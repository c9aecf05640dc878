// SPDX-License-Identifier: Apache-2.0
#include "app/session/plugin_trust.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "app/config/document.h"
#include "app/config/printable.h"
#include "mxtrain/base/error.h"

namespace mxtrain::session {
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
  std::vector<std::string> missing;
  for (const std::string& plugin : wanted) {
    if (!HasName(named, plugin)) missing.push_back(plugin);
  }
  if (missing.empty()) return;
  Throw(ErrorKind::kConfig,
        "{} was trained with the plug-in{} {}; plug-ins run arbitrary code, so those of a "
        "checkpoint are loaded only if you name them:{}",
        file, missing.size() > 1 ? "s" : "", join(missing, ", "), PluginFlags(missing));
}

std::vector<std::string> MergePlugins(const std::vector<std::string>& flags,
                                      const std::vector<std::string>& configured) {
  namespace fs = std::filesystem;
  std::vector<std::string> merged;
  std::map<fs::path, std::string> by_name;  // the flags
  std::set<fs::path> files;
  for (const std::string& plugin : flags) {
    if (!files.insert(fs::weakly_canonical(plugin)).second) continue;  // named twice
    const auto [same_name, is_new] = by_name.emplace(fs::path(plugin).filename(), plugin);
    if (!is_new) {
      Throw(ErrorKind::kUsage,
            "--plugin {} and --plugin {} have the same file name, by which plug-ins are told "
            "apart; rename one of them",
            same_name->second, plugin);
    }
    merged.push_back(fs::absolute(plugin).lexically_normal().string());
  }
  for (const std::string& plugin : configured) {
    if (!HasName(flags, plugin)) merged.push_back(plugin);
  }
  return merged;
}

std::string PluginFlags(const std::vector<std::string>& plugins) {
  std::string flags;
  for (const std::string& plugin : plugins) flags += " --plugin " + config::QuoteShell(plugin);
  return flags;
}

std::vector<std::string> PluginsOf(const std::string& config_text) {
  const config::Value root = config::ParseResolved("the model's configuration", config_text);
  std::vector<std::string> plugins;
  if (const config::Value* list = root.Get("plugins"); list && list->is_list()) {
    for (const config::Value& item : list->list) plugins.push_back(item.text);
  }
  return plugins;
}

}  // namespace mxtrain::session
