// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_layers.h"

namespace mxtrain::config {

const Entry* FindEntry(const WrittenNet& net, int scope, std::string_view name) {
  bool own = true;
  for (int s = scope; s >= 0; s = net.scopes[static_cast<size_t>(s)].parent, own = false) {
    const auto& names = net.scopes[static_cast<size_t>(s)].names;
    const auto found = names.find(name);
    if (found != names.end() && (own || found->second.kind == Entry::Kind::kVariable))
      return &found->second;
  }
  return nullptr;
}

std::vector<std::string> KnownNames(const WrittenNet& net, int scope) {
  std::vector<std::string> known;
  bool own = true;
  for (int s = scope; s >= 0; s = net.scopes[static_cast<size_t>(s)].parent, own = false) {
    for (const auto& [name, entry] : net.scopes[static_cast<size_t>(s)].names) {
      if (own || entry.kind == Entry::Kind::kVariable) known.push_back(name);
    }
  }
  return known;
}

}  // namespace mxtrain::config
