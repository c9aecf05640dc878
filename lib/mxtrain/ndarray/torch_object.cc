// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/ndarray/internal/torch_object.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>

#include "mxtrain/base/text.h"
#include "mxtrain/ndarray/internal/refuse_file.h"

namespace mxtrain::torch_object {
namespace {

using Kind = PickleValue::Kind;
using Values = std::span<const PickleValue>;

// What begins so makes a tensor of some kind.
constexpr std::string_view kRebuilds[] = {"torch._utils._rebuild_", "torch._tensor._rebuild_"};

constexpr const char* kStates[] = {"state_dict", "model",     "model_state_dict",
                                   "ema",        "model_ema", "state_dict_ema",
                                   "net",        "module",    "params"};
// What wrappers of a net put before the names of its arrays, in any order.
constexpr std::string_view kWrappers[] = {"module.", "_orig_mod.", "model."};
// State dicts that are looked at, and bytes of keys and names in this.
constexpr size_t kMostStates = 64, kMostKey = 512;
constexpr int kMostNested = 4;  // dicts in one another
constexpr size_t kMostNamed = 6;

// Refuses an object where a state dict is expected.
[[noreturn]] void RefuseObject(std::string_view name) {
  for (std::string_view prefix : {"torch.nn.", "torchvision.models.", "timm.models."}) {
    if (name.starts_with(prefix))
      RefuseFile("saved as a whole module, of {}; save its state_dict() instead: {}",
                 QuotedName(name), kAdvice);
  }
  RefuseFile(
      "it refers to {}, and nothing but tensors, numbers, texts, lists and dicts is read, so that "
      "no file can run code; if this was saved as a whole module, save its state_dict() instead: "
      "{}",
      QuotedName(name), kAdvice);
}

bool HasTensors(const Pickle& pickle, Values dict) {
  for (size_t i = 0; i < dict.size(); i += 2) {
    if (dict[i].kind == Kind::kText && IsTensor(pickle, dict[i + 1])) return true;
  }
  return false;
}

std::string Below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : (path + ".").append(key);
}

bool IsDict(const Pickle& pickle, const PickleValue& value) {
  return value.kind == Kind::kDict || !pickle.DictItems(value).empty();
}

// Finds the dicts with tensors, each of which is looked at once.
class StateFinder {
 public:
  explicit StateFinder(const Pickle& pickle) : pickle_(pickle) {}

  // Below the keys that are usual, in their order; else the dict itself.
  std::optional<State> Usual(const State& outer, int depth = 0) {
    if (!Enter(outer.dict, depth)) return std::nullopt;
    const Values dict = pickle_.DictItems(outer.dict);
    for (std::string_view key : kStates) {
      for (size_t i = 0; i < dict.size(); i += 2) {
        if (dict[i].kind != Kind::kText || dict[i].text != key) continue;
        if (auto state = Usual({Below(outer.path, key), dict[i + 1]}, depth + 1)) return state;
      }
    }
    return HasTensors(pickle_, dict) ? std::optional(outer) : std::nullopt;
  }

  // All, the outer before the inner.
  void Collect(const State& outer, std::vector<State>* states, int depth = 0) {
    if (states->size() == kMostStates || !Enter(outer.dict, depth)) return;
    const Values dict = pickle_.DictItems(outer.dict);
    if (HasTensors(pickle_, dict)) states->push_back(outer);
    for (size_t i = 0; i < dict.size(); i += 2) {
      if (dict[i].kind == Kind::kText && dict[i].text.size() <= kMostKey)
        Collect({Below(outer.path, dict[i].text), dict[i + 1]}, states, depth + 1);
    }
  }

 private:
  bool Enter(const PickleValue& value, int depth) {
    return IsDict(pickle_, value) && depth < kMostNested && seen_.insert(value.number).second;
  }

  const Pickle& pickle_;
  std::set<int64_t> seen_;
};

std::vector<State> StatesIn(const Pickle& pickle) {
  std::vector<State> states;
  StateFinder(pickle).Collect({"", pickle.root}, &states);
  return states;
}

std::vector<std::string> PathsOf(const std::vector<State>& states) {
  std::vector<std::string> paths;
  for (const State& state : states) {
    if (!state.path.empty()) paths.push_back(QuotedName(state.path));
  }
  return paths;
}

// The names of the tensors in a state dict, without what wrappers put before them.
std::set<std::string_view> BareNames(const Pickle& pickle, const State& state) {
  std::set<std::string_view> names;
  const Values dict = pickle.DictItems(state.dict);
  for (size_t i = 0; i < dict.size(); i += 2) {
    std::string_view name = dict[i].text;
    if (name.empty() || name.size() > kMostKey || !IsTensor(pickle, dict[i + 1])) continue;
    for (bool found = true; found;) {
      found = false;
      for (std::string_view wrapper : kWrappers) {
        if (!name.starts_with(wrapper)) continue;
        name.remove_prefix(wrapper.size());
        found = true;
      }
    }
    names.insert(name);
  }
  return names;
}

// Why a file without a usual state dict is refused.
[[noreturn]] void RefuseStates(const Pickle& pickle, const std::vector<State>& states) {
  if (!states.empty()) {
    RefuseFile(
        "it holds tensors under {}, and under none of {}; say which to read: train.weights.state "
        "(`mxtrain init`: --weights-state)",
        FirstOf(PathsOf(states), kMostNamed), join(kStates, ", "));
  }
  std::vector<std::string> keys;
  const Values dict = pickle.DictItems(pickle.root);
  for (size_t i = 0; i < dict.size(); i += 2) {
    if (dict[i].kind != Kind::kText) continue;
    if (std::ranges::find(kStates, dict[i].text) != std::end(kStates) &&
        dict[i + 1].kind == Kind::kCall)
      RefuseObject(CalleeOf(pickle, dict[i + 1]));
    if (keys.size() <= kMostNamed) keys.push_back(QuotedName(dict[i].text));
  }
  RefuseFile("it holds no tensors by name, neither in its dict nor under {}; its keys are: {}",
             join(kStates, ", "), keys.empty() ? "none" : FirstOf(keys, kMostNamed));
}

}  // namespace

std::string_view CalleeOf(const Pickle& pickle, const PickleValue& call) {
  const PickleValue& callee = pickle.Items(call)[0];
  if (callee.kind == Kind::kName) return callee.text;
  if (callee.kind != Kind::kReference) return "";
  const Values id = pickle.Items(pickle.Items(callee)[0]);
  return id.size() > 1 && id[1].kind == Kind::kName ? id[1].text : "";
}

bool IsTensor(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::kCall) return false;
  const std::string_view callee = CalleeOf(pickle, value);
  return callee == kParameter || std::ranges::any_of(kRebuilds, [&](std::string_view rebuild) {
           return callee.starts_with(rebuild);
         });
}

State StateOf(const Pickle& pickle, const std::string& wanted) {
  const PickleValue& root = pickle.root;
  if (IsTensor(pickle, root))
    RefuseFile(
        "it holds one tensor without a name; save a dict: torch.save({{'weight': tensor}}, FILE)");
  if (!IsDict(pickle, root)) {
    if (root.kind == Kind::kCall) RefuseObject(CalleeOf(pickle, root));
    if (root.kind == Kind::kName) RefuseObject(root.text);
    RefuseFile("it does not hold a dict; save one: {}", kAdvice);
  }
  if (wanted.empty()) {
    if (const auto state = StateFinder(pickle).Usual({"", root})) return *state;
  }
  const std::vector<State> states = StatesIn(pickle);
  if (wanted.empty()) {
    if (states.size() != 1) RefuseStates(pickle, states);
    return states[0];
  }
  for (const State& state : states) {
    if (state.path == wanted) return state;
  }
  for (const State& state : states) {
    if (state.path.starts_with(Below(wanted, ""))) return state;
  }
  const std::vector<std::string> paths = PathsOf(states);
  RefuseFile("it holds no tensors by name under {}; it does under: {}", QuotedName(wanted),
             paths.empty() ? "none of its keys" : FirstOf(paths, kMostNamed));
}

std::vector<std::string> OthersLike(const Pickle& pickle, const State& taken) {
  std::vector<std::string> paths;
  const std::set<std::string_view> names = BareNames(pickle, taken);
  for (const State& state : StatesIn(pickle)) {
    if (state.dict.number == taken.dict.number || state.path.empty()) continue;
    const std::set<std::string_view> theirs = BareNames(pickle, state);
    const auto shared = static_cast<size_t>(std::ranges::count_if(
        theirs, [&names](std::string_view name) { return names.contains(name); }));
    if (shared > 0 && 2 * shared >= names.size()) paths.push_back(state.path);
  }
  return paths;
}

}  // namespace mxtrain::torch_object
