// SPDX-License-Identifier: Apache-2.0
#include "app/config/net_expansion.h"

#include <algorithm>

#include "app/config/evaluate.h"
#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

// Of layers, uses of blocks and iterations of repeats; a net of kMaxLayers (net_expand.cc) never
// reaches it.
constexpr int64_t kMaxValues = 1'000'000;

}  // namespace

Names Expansion::NamesOf(int scope) const {
  Names names;
  names.lookup = [this, scope](std::string_view name) -> std::optional<Constant> {
    const std::map<std::string, Constant>& own = ScopeAt(scope).constants;
    if (const auto found = own.find(std::string(name)); found != own.end()) return found->second;
    const std::map<std::string, Constant>& vars = net_.scopes[0].constants;
    if (const auto found = vars.find(std::string(name)); found != vars.end()) return found->second;
    const std::optional<int64_t> builtin = builtins_ ? builtins_(name) : std::nullopt;
    return builtin ? std::optional<Constant>(*builtin) : std::nullopt;
  };
  names.known = [this, scope] {
    std::vector<std::string> known;
    for (const auto& [name, value] : ScopeAt(scope).constants) known.push_back(name);
    for (const auto& [name, value] : net_.scopes[0].constants) known.push_back(name);
    known.push_back("classes");
    known.push_back("tokens");
    return known;
  };
  names.without_value = [](std::string_view name) -> std::string {
    if (name == "tokens")
      return "the training data provide 'tokens', the number of their ids, if they are texts";
    if (name != "classes") return "";
    return "the training data provide 'classes' if they name their classes: folders of images, "
           "lists, labels that are words; integer labels do not: write the number, such as "
           "num_hidden: 10";
  };
  return names;
}

bool Expansion::ExpandAll(Value* value, int scope) {
  Count(value->place);
  bool good = true;
  for (Value& item : value->list) good = ExpandAll(&item, scope) && good;
  for (Member& m : value->members) good = ExpandAll(&m.value, scope) && good;
  return HasExpression(*value) ? ExpandAt(value, NamesOf(scope), &diagnostics_, notes_) : good;
}

void Expansion::Count(const Place& place) {
  if (++num_values_ <= kMaxValues) return;
  Error(place,
        format("the net has more than {} values after expanding blocks and repeats", kMaxValues),
        "reduce the repeat counts");
  diagnostics_.ThrowIfErrors();
}

bool Expansion::Declare(int scope, const std::string& name, const Place& place, Entry entry) {
  Scope& s = ScopeAt(scope);
  const auto [at, fresh] = s.names.emplace(name, std::move(entry));
  if (fresh) {
    s.places[name] = place;
    return true;
  }
  std::vector<std::string> notes = notes_;
  notes.push_back(format("the first is at {}", diagnostics_.sources().Where(s.places[name])));
  diagnostics_.Error(place, format("the name '{}' is taken", name),
                     in_repeat_ ? "inside a repeat, use the index in the name: name: \"conv${i}\""
                                : "names must be unique in the net and in each block",
                     notes);
  return false;
}

std::string Expansion::AutoName(int scope, const std::string& op) {
  const Scope& s = ScopeAt(scope);
  for (;;) {
    const std::string name = Lower(op) + std::to_string(counters_[{scope, op}]++);
    if (!s.names.contains(name)) return name;
  }
}

}  // namespace mxtrain::config
