// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a request to a checked Config.
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "app/config/diagnostic.h"
#include "app/config/document.h"

namespace mxtrain::config {

// One key of the configuration and where its value came from.
struct KeyOrigin {
  std::string path;
  Place place;  // no place: the default
};

// Why the run name is invalid (its folder must be runs/NAME-0001). Null for a valid name.
const char* WhyNoRunName(std::string_view name);

struct LoadedConfig {
  Config config;
  // Every key with its value; paths absolute, expressions of the net kept: ToYaml gives the run's
  // config.yaml.
  Value resolved;
  std::vector<KeyOrigin> origins;
  Place PlaceOf(std::string_view path) const;  // no place for a default
};

// Reads, merges and checks. Errors go to `diagnostics`; the result is meaningful only if there are
// none. A file that does not exist may be one that comes with the program (ShippedFile). The net
// itself is checked by BuildNet (net.h), so that a caller can report both at once.
LoadedConfig LoadConfig(const LoadRequest& request, Diagnostics* diagnostics);

// Marks the scalars of the net and its blocks at these places (Net::texts), so that ToYaml writes
// them as texts: 010 is not 10.
void MarkTexts(const std::vector<Place>& texts, Value* resolved);

// The text of origin.txt: "train.epochs  default", a line each.
std::string OriginText(const std::vector<KeyOrigin>& origins, const SourceMap& sources);

}  // namespace mxtrain::config
