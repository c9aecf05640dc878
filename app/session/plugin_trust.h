// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which plug-ins may be loaded. A plug-in runs arbitrary code, so a file that may come from
// anywhere (a checkpoint, the bundle of a diverged run) must not load one by itself: the user
// allows plug-ins by file name, wherever they lie now.
#include <string>
#include <vector>

namespace mxtrain::session {

// Throws kConfig if `named` (the user's flags) has no file of the name of a plug-in in `wanted`.
// `file`: where these were found.
void RequirePluginsNamed(const std::vector<std::string>& wanted,
                         const std::vector<std::string>& named, const std::string& file);

// Those of the flags, each once and by its absolute path, and those of the configuration; of two
// with the same file name that of the flags. Throws kUsage for two flags of the same file name.
std::vector<std::string> MergePlugins(const std::vector<std::string>& flags,
                                      const std::vector<std::string>& configured);

// " --plugin FILE" for each of them, quoted for a shell.
std::string PluginFlags(const std::vector<std::string>& plugins);

// The entry `plugins` of a resolved configuration.
std::vector<std::string> PluginsOf(const std::string& config_text);

}  // namespace mxtrain::session
