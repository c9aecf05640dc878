// SPDX-License-Identifier: Apache-2.0
#include "app/config/unknown_keys.h"

#include <algorithm>
#include <utility>

#include "app/config/other_tools.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

// Without curly quotes and no-break spaces, which word processors and web pages insert.
std::string WithoutOrnament(std::string word) {
  for (const std::string_view ornament : {"\u201c", "\u201d", "\u2018", "\u2019", "\u00a0"}) {
    for (size_t at = word.find(ornament); at != std::string::npos; at = word.find(ornament))
      word.erase(at, ornament.size());
  }
  return word;
}

// The path of the parameter of this name, here or in other tools, among those of a key's kinds; ""
// if there is none.
std::string FindParam(const std::vector<NamedKind>& kinds, std::string_view name,
                      const std::string& path) {
  for (const NamedKind& kind : kinds) {
    for (const auto& [other, param] : kind.params_also) {
      const bool has = std::any_of(kind.params.begin(), kind.params.end(),
                                   [&, p = &param](const FieldInfo& f) { return f.name == *p; });
      if (other == name && has) return format("{}.{}", path, param);
    }
    for (const FieldInfo& field : kind.params) {
      if (field.name == name) return path + "." + field.name;
    }
  }
  return "";
}

// A key anywhere in the table that a word may mean.
struct Meant {
  std::string path;
  bool parameter = false;  // a parameter of one of the key's kinds
  // Keys before parameters, and shallower ones first.
  auto Rank() const { return std::pair(parameter, std::count(path.begin(), path.end(), '.')); }
};

void FindMeant(const std::vector<Key>& keys, std::string_view name, const std::string& prefix,
               std::vector<Meant>* found) {
  for (const Key& key : keys) {
    const std::string path = prefix + key.info.name;
    if (key.info.name == name || IsAlso(key.info, name)) {
      found->push_back({path});
      continue;
    }
    FindMeant(key.keys, name, path + ".", found);
    const std::string param = key.info.type == "list" ? "" : FindParam(key.kinds, name, path);
    if (!param.empty()) found->push_back({param, true});
  }
}

// The path of the key with this name, or with this name in other tools; "" if there is none or more
// than one. If training and validation both have it, training is meant.
std::string FindElsewhere(std::string_view name) {
  std::vector<Meant> found;
  FindMeant(Schema(), name, "", &found);
  std::erase_if(found, [](const Meant& meant) { return meant.path.starts_with("data.val."); });
  if (found.empty()) return "";
  const auto first =
      std::min_element(found.begin(), found.end(),
                       [](const Meant& a, const Meant& b) { return a.Rank() < b.Rank(); });
  const auto same = std::count_if(found.begin(), found.end(), [&](const Meant& meant) {
    return meant.Rank() == first->Rank() && meant.path != first->path;
  });
  return same > 0 ? "" : first->path;
}

// What follows the key in the path of an override: `epochs` after `trian` in trian.epochs=2. Null
// at the end of the path, and in a file.
const Member* NextInPath(const Member& member) {
  if (!member.value.is_map() || member.value.members.size() != 1) return nullptr;
  const Member& next = member.value.members[0];
  const int column = member.place.column + static_cast<int>(member.key.size()) + 1;
  const bool adjacent = next.place.file == member.place.file &&
                        next.place.line == member.place.line && next.place.column == column;
  return adjacent ? &next : nullptr;
}

const Key* Find(const std::vector<Key>& keys, const std::string& name) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.info.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

// The key that is meant by a name: its own, that in other tools, or a misspelling. Null if there is
// none.
const Key* FindClosest(const std::vector<Key>& keys, const std::string& name) {
  if (const Key* key = Find(keys, name)) return key;
  std::vector<std::string> names;
  for (const Key& key : keys) {
    if (IsAlso(key.info, name)) return &key;
    names.push_back(key.info.name);
  }
  return Find(keys, Nearest(name, names));
}

// The same for the parameters of a key's kinds: a path, "" if there is none.
std::string FindClosestParam(const Key& key, const std::string& name, const std::string& path) {
  const std::string param = FindParam(key.kinds, name, path);
  if (!param.empty()) return param;
  std::vector<std::string> names;
  for (const NamedKind& kind : key.kinds) {
    for (const FieldInfo& field : kind.params) names.push_back(field.name);
  }
  const std::string nearest = Nearest(name, names);
  return nearest.empty() ? "" : path + "." + nearest;
}

// Whether what is in the key's value is not in the table: elements, layers, names of parameters.
bool IsOpen(const KeyInfo& info) {
  return info.type == "any" || info.type.starts_with("list") ||
         info.type.find("map of") != std::string::npos;
}

// "did you mean 'train.epochs'? (integer, ...)", for a key that was meant by the first of a path,
// whose other parts are corrected, too, up to the last that exists. `prefix` comes before the key.
std::string DidYouMeanKey(const Key& first, const Member& member, const std::string& prefix) {
  const Key* meant = &first;
  std::string path = prefix + first.info.name;
  for (const Member* next = NextInPath(member); next; next = NextInPath(*next)) {
    if (const Key* below = FindClosest(meant->keys, next->key)) {
      meant = below;
      path += "." + below->info.name;
    } else if (IsOpen(meant->info)) {
      path += "." + next->key;
    } else {
      const std::string param = FindClosestParam(*meant, next->key, path);
      if (!param.empty()) path = param;
      break;
    }
  }
  return format("did you mean '{}'? {}", path, meant->Describe());
}

}  // namespace

bool IsAlso(const KeyInfo& info, std::string_view name) {
  return std::find(info.also.begin(), info.also.end(), name) != info.also.end();
}

std::string KeyList(const std::vector<Key>& keys) {
  std::vector<std::string> names;
  for (const Key& key : keys) {
    if (std::find(names.begin(), names.end(), key.info.name) == names.end())
      names.push_back(key.info.name);
  }
  return format("keys: {}", join(names, ", "));
}

std::string Suggest(const std::vector<Key>& keys, const Member& member, const std::string& path,
                    bool command_line) {
  const std::string& written = member.key;
  if (const size_t equals = written.find('='); equals != std::string::npos) {
    const std::string key = written.substr(0, written.find_last_not_of(' ', equals - 1) + 1);
    return format("did you mean '{}:{}'? a key ends in ':'", key, written.substr(equals + 1));
  }
  const std::string word = WithoutOrnament(written);
  const std::string prefix = command_line && !path.empty() ? path + "." : "";
  std::vector<std::string> names;
  for (const Key& key : keys) {
    if (IsAlso(key.info, word)) return DidYouMeanKey(key, member, prefix);
    names.push_back(key.info.name);
  }
  if (const std::string advice = AdviceForOtherTools(word); !advice.empty()) return advice;
  const std::string elsewhere = FindElsewhere(word);
  const bool at_top = elsewhere.find('.') == std::string::npos && !path.empty();
  if (!elsewhere.empty())
    return format("did you mean '{}'{}?", elsewhere, at_top ? ", at the top level" : "");
  const std::string nearest = Nearest(word, names);
  for (const Key& key : keys) {
    if (key.info.name == nearest) return DidYouMeanKey(key, member, prefix);
  }
  return (path.empty() ? "" : path + " ") + KeyList(keys);
}

}  // namespace mxtrain::config
