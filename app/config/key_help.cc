// SPDX-License-Identifier: Apache-2.0
#include "app/config/key_help.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "app/config/schema.h"

namespace mxtrain::config {
namespace {

// `beside`: the keys of its section.
using Visit =
    std::function<void(const std::string& path, const Key& key, const std::vector<Key>& beside)>;

void ForEachKey(const std::vector<Key>& keys, const std::string& prefix, const Visit& visit) {
  for (const Key& key : keys) {
    visit(prefix + key.info.name, key, keys);
    ForEachKey(key.keys, prefix + key.info.name + ".", visit);
  }
}

// Lines that begin with four blanks are code, which is never wrapped.
constexpr const char* kParamIndent = "      ";

std::string TextOfParam(const FieldInfo& param) {
  return format("{}{} {}\n", kParamIndent, param.name, DescribeField(param));
}

// `shared`: lines of parameters that are shown elsewhere.
std::string TextOfKind(const NamedKind& kind, const std::string& indentation,
                       const std::set<std::string>& shared = {}) {
  std::string text =
      format("{}{}{}\n", indentation, kind.name, kind.help.empty() ? "" : ": " + kind.help);
  for (const FieldInfo& param : kind.params) {
    if (const std::string line = TextOfParam(param); !shared.contains(line)) text += line;
  }
  return text;
}

// What a key is for, if not for all values of its selector: "source: csv, list"; of most of them
// those that it is not for: "source: all but text".
std::string OfValues(const KeyInfo& key, const std::vector<Key>& beside) {
  std::vector<std::string> used_for = key.only_for;
  std::erase_if(used_for, [&key](const std::string& value) {
    return std::ranges::count(key.idle_for, value) > 0;
  });
  if (used_for.empty()) return "";
  if (used_for == std::vector<std::string>{""}) return format("without a {}", key.selector);
  const auto selector = std::ranges::find(
      beside, key.selector, [](const Key& other) -> const std::string& { return other.info.name; });
  std::vector<std::string> others;
  if (selector != beside.end()) {
    std::ranges::copy_if(selector->info.choices, std::back_inserter(others),
                         [&used_for](const std::string& choice) {
                           return std::ranges::count(used_for, choice) == 0;
                         });
    if (others.empty()) return "";
  }
  const bool most = !others.empty() && others.size() < used_for.size();
  return format("{}: {}{}", key.selector, most ? "all but " : "",
                join(most ? others : used_for, ", "));
}

// The lines of parameters that all of several kinds have but one, by the name of that; "": none.
std::map<std::string, std::vector<std::string>> SharedParams(const std::vector<NamedKind>& kinds) {
  std::map<std::string, std::vector<std::string>> shared;
  if (kinds.size() < 3) return shared;
  for (const FieldInfo& param : kinds[0].params) {
    const std::string line = TextOfParam(param);
    std::vector<std::string> others;
    for (const NamedKind& kind : kinds) {
      const bool has = std::ranges::any_of(
          kind.params, [&line](const FieldInfo& other) { return TextOfParam(other) == line; });
      if (!has) others.push_back(kind.name);
    }
    if (others.size() < 2) shared[others.empty() ? "" : others[0]].push_back(line);
  }
  return shared;
}

// A choice with the keys beside it that are for it alone, or for some choices.
std::string TextOfChoice(const Key& key, size_t choice, const std::vector<Key>& beside) {
  const std::string& name = key.info.choices[choice];
  std::string text = format("{}: {}\n", name, key.info.choice_help[choice]);
  for (const Key& other : beside) {
    const std::vector<std::string>& of = other.info.only_for;
    if (std::ranges::count(other.info.idle_for, name) > 0) continue;
    if (other.info.selector == key.info.name && std::find(of.begin(), of.end(), name) != of.end())
      text += format("{}{} {}\n", kParamIndent, other.info.name, other.Describe(name));
  }
  return text;
}

// The keys of a section: those that are always there, then those of some values of another key, as
// of kinds of data, together by these values.
std::string TextOfSection(const std::string& path, const std::vector<Key>& keys) {
  std::string always;
  std::vector<std::pair<std::string, std::string>> grouped;  // by what they are for, in order
  for (const Key& key : keys) {
    const std::string inner = path + "." + key.info.name;
    std::string text = key.is_section()
                           ? format("  {}: {}; `mxtrain help {}`\n", inner, key.info.help, inner)
                           : format("  {} {}\n", inner, key.Describe());
    if (!key.kinds.empty()) text += format("      `mxtrain help {}` lists them\n", inner);
    const std::string of = OfValues(key.info, keys);
    const auto group = std::ranges::find(grouped, of, &std::pair<std::string, std::string>::first);
    (of.empty()               ? always
     : group == grouped.end() ? grouped.emplace_back(of, "").second
                              : group->second) += text;
  }
  for (const auto& [of, text] : grouped) always += format("\n{}:\n{}", of, text);
  return always;
}

// A key on one line, followed by its choices; sections with their keys.
std::string TextOfKey(const std::string& path, const Key& key) {
  std::string text = key.is_section() ? format("{}: {}\n", path, key.info.help)
                                      : format("{} {}\n", path, key.Describe());
  const auto shared = SharedParams(key.kinds);
  std::set<std::string> lines;
  for (const auto& [but, of] : shared) lines.insert(of.begin(), of.end());
  for (const NamedKind& kind : key.kinds) text += TextOfKind(kind, "  ", lines);
  for (const auto& [but, of] : shared) {
    text += but.empty() ? "  each of them takes, too:\n" : format("  all but {} take, too:\n", but);
    for (const std::string& line : of) text += line;
  }
  for (size_t i = 0; i < key.info.choice_help.size(); ++i)
    text += format("  {}: {}\n", key.info.choices[i], key.info.choice_help[i]);
  return text + TextOfSection(path, key.keys);
}

bool MayName(const std::string& topic, const std::string& path) {
  return path == topic || path.ends_with("." + topic);
}

bool Holds(const std::vector<std::string>& names, const std::string& topic) {
  return std::find(names.begin(), names.end(), topic) != names.end();
}

// `also`: search by names in other tools.
std::string HelpOn(const std::string& topic, bool also) {
  std::string keys, kinds, choice;
  std::vector<std::string> of_choice;  // keys with a choice of this name
  std::set<std::string> told;
  const auto tell = [&](const std::string& text, const std::string& path) {
    if (told.insert(text).second)
      kinds += format("{}{}  for {}\n", kinds.empty() ? "" : "\n", text, path);
  };
  ForEachKey(Schema(), "", [&](const std::string& path, const Key& key, const auto& beside) {
    if (also ? Holds(key.info.also, topic) : MayName(topic, path))
      keys += (keys.empty() ? "" : "\n") + TextOfKey(path, key);
    for (const NamedKind& kind : key.kinds) {
      if (also ? !Holds(kind.also, topic) : kind.name != topic) continue;
      tell(TextOfKind(kind, ""), path);
    }
    for (size_t i = 0; !also && i < key.info.choice_help.size(); ++i) {
      if (key.info.choices[i] != topic) continue;
      if (choice.empty()) choice = TextOfChoice(key, i, beside);
      of_choice.push_back(path);
    }
  });
  if (!choice.empty()) tell(choice, format("{}", join(of_choice, ", ")));
  return keys + (keys.empty() || kinds.empty() ? "" : "\n") + kinds;
}

// Parameters of the choices of keys: "lr" and "train.optimizer.lr". The same line is for several
// choices.
std::string HelpOnParameter(const std::string& topic) {
  std::string text;
  ForEachKey(Schema(), "", [&](const std::string& path, const Key& key, const auto&) {
    std::map<std::string, std::vector<std::string>> lines;
    for (const NamedKind& kind : key.kinds) {
      for (const FieldInfo& param : kind.params) {
        const std::string whole = path + "." + param.name;
        if (MayName(topic, whole))
          lines[format("{} {}", whole, DescribeField(param))].push_back(kind.name);
      }
    }
    for (const auto& [line, kinds] : lines)
      text += format("{}\n  of {}\n", line, join(kinds, ", "));
  });
  return text;
}

std::string EveryKey() {
  std::string text;
  ForEachKey(Schema(), "", [&text](const std::string& path, const Key& key, const auto&) {
    text += key.is_section() ? format("\n{}: {}\n", path, key.info.help)
                             : format("  {} {}\n", path, key.Describe());
    if (!key.kinds.empty()) text += format("      `mxtrain help {}` lists them\n", path);
  });
  return text;
}

}  // namespace

std::string HelpOnKey(const std::string& topic) {
  if (topic == "keys") return EveryKey();
  std::string text = HelpOn(topic, /*also=*/false);
  if (text.empty()) text = HelpOn(topic, /*also=*/true);
  return text.empty() ? HelpOnParameter(topic) : text;
}

std::vector<std::string> KeyTopics() {
  std::vector<std::string> topics{"keys"};
  ForEachKey(Schema(), "", [&topics](const std::string& path, const Key& key, const auto&) {
    topics.push_back(path);
    topics.push_back(key.info.name);
    for (const NamedKind& kind : key.kinds) topics.push_back(kind.name);
    if (!key.info.choice_help.empty())
      topics.insert(topics.end(), key.info.choices.begin(), key.info.choices.end());
  });
  return topics;
}

}  // namespace mxtrain::config
