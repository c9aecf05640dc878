// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_keys.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "mxtrain/base/suggest.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::config {
namespace {

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '/' || c >= 0x80;
  });
}

}  // namespace

bool ReadName(const Value& value, Expansion* expansion, std::string* name) {
  if (value.is_scalar() && IsName(value.text)) {
    *name = value.text;
    return true;
  }
  expansion->Error(value.place, format("a name may contain letters, digits, '_' and '-', got {}",
                                       value.Describe()));
  return false;
}

bool ReadMultiplier(const Member& member, Expansion* expansion, Attrs* attrs) {
  const std::optional<double> number = member.value.AsNumber();
  if (number && std::abs(*number) <= kMostMultiplier)
    return (*attrs)[member.key] = member.value.text, true;
  expansion->Error(member.value.place, format("{}: expected a number up to {}, got {}", member.key,
                                              kMostMultiplier, member.value.Describe()));
  return false;
}

bool ReadAttrs(const Value& value, Expansion* expansion, Attrs* attrs) {
  if (!value.is_map()) {
    expansion->Error(value.place, format("attrs: expected a map, got {}", value.Describe()),
                     "attrs: {lr_mult: 0}");
    return false;
  }
  static const std::vector<std::string> kKnown = {"lr_mult", "wd_mult", "ctx_group"};
  for (const Member& m : value.members) {
    const bool known = std::any_of(kKnown.begin(), kKnown.end(), [&](const std::string& k) {
      return m.key == k || m.key.ends_with("_" + k);
    });
    if (!known) {
      const std::string nearest = Nearest(m.key, kKnown);
      expansion->Error(
          m.place, format("there is no attribute '{}'", m.key),
          nearest.empty()
              ? "attributes: lr_mult, wd_mult, ctx_group; weight_lr_mult for one argument"
              : format("did you mean '{}'?", nearest));
      return false;
    }
    if (m.key.ends_with("mult")) {
      if (!ReadMultiplier(m, expansion, attrs)) return false;
      continue;
    }
    if (!m.value.is_scalar()) {
      expansion->Error(m.value.place,
                       format("{}: expected a text, got {}", m.key, m.value.Describe()));
      return false;
    }
    (*attrs)[m.key] = m.value.text;
  }
  return true;
}

std::vector<Reference> ReadReferences(Value value, int scope, Expansion* expansion) {
  std::vector<Reference> references;
  if (value.is_null() || !expansion->ExpandAll(&value, scope)) return references;
  const std::vector<Value> items = value.is_list() ? value.list : std::vector<Value>{value};
  for (const Value& item : items) {
    if (!item.is_scalar() || item.text.empty()) {
      expansion->Error(item.place,
                       format("expected the name of a layer or input, got {}", item.Describe()),
                       "inputs: [conv1, conv2]");
      return {};
    }
    references.push_back({item.text, item.place, scope, expansion->notes()});
  }
  if (references.empty())
    expansion->Error(value.place, "the list of inputs is empty",
                     "remove it to use the previous layer");
  return references;
}

}  // namespace mxtrain::config
