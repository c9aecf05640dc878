// SPDX-License-Identifier: Apache-2.0
#include "app/config/differences.h"

#include <algorithm>
#include <map>

namespace mxtrain::config {
namespace {

void AddFacts(const Value& value, const std::string& path, Facts* facts) {
  const auto below = [&path](const std::string& key) {
    return path.empty() ? key : path + "." + key;
  };
  const bool nested = std::any_of(value.list.begin(), value.list.end(),
                                  [](const Value& v) { return v.is_map() || v.is_list(); });
  if (value.is_map()) {
    for (const Member& member : value.members) AddFacts(member.value, below(member.key), facts);
  } else if (nested) {
    for (size_t i = 0; i < value.list.size(); ++i)
      AddFacts(value.list[i], below(std::to_string(i)), facts);
  } else if (!value.is_null()) {
    facts->emplace_back(path, ToFlow(value));
  }
}

}  // namespace

Facts Flatten(const Value& root) {
  Facts facts;
  AddFacts(root, "", &facts);
  return facts;
}

Facts FlattenText(const std::string& name, const std::string& yaml) {
  return Flatten(ParseResolved(name, yaml));
}

std::vector<Difference> Compare(const Facts& left, const Facts& right, bool all) {
  const std::map<std::string, std::string> of_left(left.begin(), left.end()),
      of_right(right.begin(), right.end());
  const auto find = [](const auto& facts, const std::string& name) {
    return facts.contains(name) ? facts.at(name) : std::string();
  };
  std::vector<Difference> differences;
  for (const auto& [name, value] : left) {
    if (all || find(of_right, name) != value)
      differences.push_back({name, value, find(of_right, name)});
  }
  for (const auto& [name, value] : right) {
    if (!of_left.contains(name)) differences.push_back({name, "", value});
  }
  return differences;
}

}  // namespace mxtrain::config
