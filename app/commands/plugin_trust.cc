// SPDX-License-Identifier: Apache-2.0
#include "app/commands/plugin_trust.h"

#include <algorithm>
#include <filesystem>

#include "app/report/output.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {

void RequirePluginsNamed(const std::vector<std::string>& wanted,
                         const std::vector<std::string>& named, const std::string& file) {
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).filename();
  };
  std::vector<std::string> missing, flags;
  for (const std::string& plugin : wanted) {
    const auto same_name = [&](const std::string& given) {
      return name_of(given) == name_of(plugin);
    };
    if (std::any_of(named.begin(), named.end(), same_name)) continue;
    missing.push_back(plugin);
    flags.push_back("--plugin " + report::QuoteShell(plugin));
  }
  if (missing.empty()) return;
  Throw(ErrorKind::kConfig,
        "{} was trained with the plug-in{} {}; plug-ins run arbitrary code, so those of a "
        "checkpoint are loaded only if you name them: {}",
        file, missing.size() > 1 ? "s" : "", join(missing, ", "), join(flags, " "));
}

}  // namespace mxtrain::commands
