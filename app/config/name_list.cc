// SPDX-License-Identifier: Apache-2.0
#include "app/config/name_list.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "app/config/diagnostic.h"
#include "app/config/document.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::config {
namespace {

constexpr const char* kRuleForm =
    "a rule is [PATTERN, REPLACEMENT], [PATTERN, null] to drop matching names, or [PATTERN, "
    "REPLACEMENT, transpose]";
constexpr const char* kFamilyForm =
    "a family is {has: PATTERN, interpolation, mean, std, vars, nets}";
constexpr size_t kMostList = size_t{16} << 20;

class ListReader {
 public:
  ListReader(std::string net, Diagnostics* diagnostics)
      : net_(std::move(net)), diagnostics_(*diagnostics) {}

  NameList Read(const Value& root) {
    const Value* rules = &root;
    NameList list;
    if (root.is_map()) {
      for (const Member& m : root.members) {
        if (m.key != "rules" && m.key != "families")
          diagnostics_.Error(m.place, format("a name map has no key '{}'", m.key),
                             "its keys are families and rules");
      }
      rules = root.Get("rules");
      if (const Value* families = root.Get("families")) ReadFamilies(*families, &list);
    }
    if (!rules || !rules->is_list()) {
      diagnostics_.Error(
          rules ? rules->place : root.place,
          format("a name map must be a list, got {}", rules ? rules->Describe() : root.Describe()),
          kRuleForm);
    }
    diagnostics_.ThrowIfErrors();
    list.rules = ReadRules(*rules);
    if (list.families.empty()) {
      list.families.emplace_back();
      list.families[0].name = "torchvision";
    }
    return list;
  }

 private:
  NameMap ReadRules(const Value& value) {
    std::vector<NameMap::Rule> rules;
    for (const Value& item : value.list) {
      const size_t size = item.is_list() ? item.list.size() : 0;
      const bool transpose = size == 3 && item.list[1].is_scalar() && item.list[2].is_scalar() &&
                             item.list[2].text == "transpose";
      const bool good = (size == 2 || transpose) && item.list[0].is_scalar() &&
                        (item.list[1].is_scalar() || item.list[1].is_null());
      if (!good) {
        diagnostics_.Error(item.place, format("{} is not a rule", item.Describe()), kRuleForm);
        continue;
      }
      rules.push_back({item.list[0].text,
                       item.list[1].is_null() ? std::nullopt : std::optional(item.list[1].text),
                       transpose});
    }
    diagnostics_.ThrowIfErrors();
    return NameMap(rules);
  }

  void ReadFamilies(const Value& value, NameList* list) {
    if (!value.is_map())
      return diagnostics_.Error(
          value.place, format("families: expected a map, got {}", value.Describe()), kFamilyForm);
    for (const Member& m : value.members) {
      WeightsFamily family;
      family.name = m.key;
      ReadFacts(m.value, /*of_net=*/false, &family);
      if (const Value* nets = m.value.is_map() ? m.value.Get("nets") : nullptr) {
        if (const Value* own = nets->is_map() ? nets->Get(net_) : nullptr)
          ReadFacts(*own, /*of_net=*/true, &family);
      }
      list->families.push_back(std::move(family));
    }
  }

  void ReadFacts(const Value& facts, bool of_net, WeightsFamily* family) {
    if (!facts.is_map())
      return diagnostics_.Error(facts.place, format("expected a map, got {}", facts.Describe()),
                                kFamilyForm);
    for (const Member& m : facts.members) {
      const Value& value = m.value;
      bool good = true;
      if (m.key == "has" && !of_net) {
        good = value.is_scalar();
        if (good) family->has = NameMap({{value.text, std::nullopt}});
      } else if (m.key == "interpolation") {
        good = value.is_scalar();
        family->interpolation = value.text;
      } else if (m.key == "mean" || m.key == "std") {
        good = ReadNumbers(value, m.key == "mean" ? &family->mean : &family->std);
      } else if (m.key == "vars") {
        good = value.is_map();
        for (const Member& var : value.members) {
          good = good && var.value.is_scalar();
          family->vars.emplace_back(var.key, var.value.text);
        }
      } else if (m.key == "nets" && !of_net) {
        good = value.is_map();
      } else {
        diagnostics_.Error(m.place, format("a family has no key '{}'", m.key), kFamilyForm);
      }
      if (!good)
        diagnostics_.Error(value.place, format("{}: not {}", m.key, value.Describe()), kFamilyForm);
    }
  }

  static bool ReadNumbers(const Value& value, std::vector<double>* numbers) {
    numbers->clear();
    for (const Value& item : value.list) {
      const std::optional<double> number = item.AsNumber();
      if (!number) return false;
      numbers->push_back(*number);
    }
    return value.is_list() && numbers->size() == 3;
  }

  const std::string net_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool WeightsFamily::Owns(const std::vector<std::string>& arrays) const {
  return !has || std::any_of(arrays.begin(), arrays.end(),
                             [this](const std::string& array) { return !has->Apply(array); });
}

bool WeightsFamily::DiffersFrom(const WeightsFamily& other) const {
  return mean != other.mean || std != other.std || vars != other.vars;
}

NameList ReadNameList(const std::string& path, const std::string& net) {
  auto sources = std::make_shared<SourceMap>();
  Diagnostics diagnostics(sources);
  const Value root = ParseYaml(
      sources->AddFile(path, ReadFile(path, kMostList), std::filesystem::path(path).parent_path()),
      &diagnostics);
  try {
    return ListReader(net, &diagnostics).Read(root);
  } catch (const DiagnosticError&) {
    throw;
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), path);
  }
}

}  // namespace mxtrain::config
