// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_blocks.h"

#include <algorithm>
#include <utility>

#include "app/config/evaluate.h"
#include "app/config/net_keys.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

bool ReadBlockDefaults(const Member& block, const Place& place, const Value* params,
                       Expansion* expansion, std::map<std::string, Constant>* constants) {
  bool good = true;
  if (!params) return good;
  Names names;
  names.lookup = [&](std::string_view name) -> std::optional<Constant> {
    const auto found = constants->find(std::string(name));
    return found != constants->end() ? std::optional(found->second)
                                     : expansion->NamesOf(0).lookup(name);
  };
  std::vector<std::string> known;
  names.known = [&known] { return known; };
  for (const Member& m : params->members) {
    if (constants->contains(m.key)) continue;
    Value value = m.value;
    if (value.is_null()) {
      expansion->Error(place, format("block '{}' needs the parameter '{}'", block.key, m.key),
                       format("- {}: {{{}: ...}}", block.key, m.key));
      good = false;
    } else if (HasExpression(value) &&
               !ExpandAt(&value, names, &expansion->diagnostics(), expansion->notes())) {
      good = false;
    } else {
      (*constants)[m.key] = ToConstant(value);
      known.push_back(m.key);
    }
  }
  return good;
}

}  // namespace

void CheckBlocks(Expansion* expansion) {
  const Value& blocks = expansion->config().blocks;
  if (!blocks.is_null() && !blocks.is_map())
    expansion->Error(blocks.place,
                     format("blocks: expected a map of named sub-nets, got {}", blocks.Describe()));
  static const std::vector<std::string> kKeys = {"params", "inputs", "layers", "outputs"};
  for (const Member& block : blocks.members) {
    if (expansion->registry().Has(block.key))
      expansion->Error(block.place, format("the block '{}' has the name of an operator", block.key),
                       "choose another name");
    if (!block.value.is_map() || !block.value.Get("layers")) {
      expansion->Error(block.place, format("the block '{}' has no layers", block.key),
                       "{params: {width, stride: 1}, layers: [...]}");
      continue;
    }
    for (const Member& m : block.value.members) {
      if (std::find(kKeys.begin(), kKeys.end(), m.key) != kKeys.end()) continue;
      const std::string nearest = Nearest(m.key, kKeys);
      expansion->Error(m.place, format("a block has no key '{}'", m.key),
                       nearest.empty() ? format("keys: {}", join(kKeys, ", "))
                                       : format("did you mean '{}'?", nearest));
    }
  }
}

bool ReadBlockUse(const Member& block, const Place& place, const Value& use, int scope,
                  Expansion* expansion, BlockUse* read) {
  const Value* params = block.value.Get("params");
  read->name_place = place;
  bool good = true;
  std::vector<std::string> known;
  if (params) {
    for (const Member& m : params->members) {
      expansion->Count(place);
      known.push_back(m.key);
    }
  }
  for (const Member& member : use.members) {
    Member m = member;
    if (m.key == "when") continue;
    if (!expansion->ExpandAll(&m.value, scope)) {
      good = false;
    } else if (m.key == "name") {
      good = ReadName(m.value, expansion, &read->name) && good;
      read->name_place = m.value.place;
    } else if (m.key == "inputs") {
      read->inputs = ReadReferences(m.value, scope, expansion);
      good = good && !read->inputs.empty();
    } else if (std::find(known.begin(), known.end(), m.key) == known.end()) {
      const std::string nearest = Nearest(m.key, known);
      expansion->Error(m.place, format("block '{}' has no parameter '{}'", block.key, m.key),
                       !nearest.empty() ? format("did you mean '{}'?", nearest)
                       : known.empty()  ? "it takes none"
                                        : format("it takes {}", join(known, ", ")));
      good = false;
    } else if (!m.value.is_scalar()) {
      expansion->Error(m.value.place ? m.value.place : m.place,
                       format("{}: expected a number, a text or a truth value, got {}", m.key,
                              m.value.Describe()));
      good = false;
    } else {
      read->constants[m.key] = ToConstant(m.value);
    }
  }
  return good && ReadBlockDefaults(block, place, params, expansion, &read->constants);
}

bool BindBlockInputs(const Member& block, const Place& place, int inside,
                     const std::vector<Reference>& given, const Entry& before, Expansion* expansion,
                     Entry* first) {
  std::vector<std::string> names = {"input"};
  if (const Value* declared = block.value.Get("inputs")) {
    names.clear();
    const std::vector<Value> items =
        declared->is_list() ? declared->list : std::vector<Value>{*declared};
    for (const Value& item : items) names.push_back(item.text);
  }
  if (!given.empty() && given.size() != names.size()) {
    expansion->Error(
        given[0].place,
        format("block '{}' takes {} ({}), but {} given", block.key,
               names.size() == 1 ? "one input" : format("{} inputs", names.size()),
               join(names, ", "), given.size() == 1 ? "one is" : format("{} are", given.size())));
    return false;
  }
  if (given.empty() && names.size() > 1) {
    expansion->Error(place,
                     format("block '{}' takes {} inputs ({}): specify them with `inputs`",
                            block.key, names.size(), join(names, ", ")),
                     format("inputs: [{}]", join(names, ", ")));
    return false;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Entry entry{Entry::Kind::kOutside, -1, {}};
    if (given.empty()) {
      entry = before;
    } else {
      entry.outside.push_back(given[i]);
    }
    if (names.size() == 1) *first = entry;
    expansion->Declare(inside, names[i], place, std::move(entry));
  }
  return true;
}

}  // namespace mxtrain::config
