// SPDX-License-Identifier: Apache-2.0
#pragma once
// The nets that come with the program, by name: NAME.yaml in the folders imagenet and detection of
// its configurations, which are installed with it. The folders are found relative to the program's
// own file, so that the whole tree may be moved; a build folder has a link to that of the sources.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/config/diagnostic.h"
#include "app/config/value.h"

namespace mxtrain::config {

// Those of each folder, sorted. Throws kFileSystem if one is not where the program expects it.
std::vector<std::string> NetNames();
// The configuration of a net: NAME.yaml with its recipe. Throws kConfig, with the nearest name, if
// there is no such net, and as NetNames.
std::filesystem::path NetFile(const std::string& name);

// The configuration of what makes an answer for each pixel of the layers of such a net, by its name
// (net.decoder): a file of the folder `decoders` beside them. Throws as NetFile.
std::filesystem::path DecoderFile(const std::string& name);

// The configuration that comes with the program, by the path that it has in the sources:
// configs/mnist/lenet.yaml. Nothing for another path, one of a file that exists, or where there is
// no such configuration.
std::optional<std::filesystem::path> ShippedFile(const std::string& path);

// What of a net's configuration belongs to the net itself: `net`, `blocks`, `vars`, and of `train`
// the initial values of its parameters and the list of names of published weights. Without the
// value of vars.classes, which is then the number of classes in the data.
Value NetWithoutRecipe(const Value& config);

}  // namespace mxtrain::config
