// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/initializer/initializer.h"

#include "mxtrain/base/read_json.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

struct Entry {
  const char* name;
  const char* alias;  // in MXNet's files, lower case
  std::unique_ptr<Initializer> (*make)(const Kwargs&);
  std::vector<FieldInfo> (*describe)();
};

const Entry kEntries[] = {{"zero", "zeros", NewZero, NoParam::Describe},
                          {"one", "ones", NewOne, NoParam::Describe},
                          {"constant", "constant", NewConstant, DescribeConstant},
                          {"uniform", "uniform", NewUniform, DescribeUniform},
                          {"normal", "normal", NewNormal, DescribeNormal},
                          {"xavier", "xavier", NewXavier, DescribeXavier},
                          {"msra_prelu", "msraprelu", NewMsraPrelu, DescribeMsraPrelu},
                          {"orthogonal", "orthogonal", NewOrthogonal, DescribeOrthogonal},
                          {"bilinear", "bilinear", NewBilinear, NoParam::Describe},
                          {"fused_rnn", "fusedrnn", NewFusedRnn, DescribeFusedRnn}};

const Entry& Find(std::string_view name) {
  const std::string lower = Lower(name);
  for (const Entry& entry : kEntries) {
    if (lower == entry.name || lower == entry.alias) return entry;
  }
  const std::vector<std::string> names = Initializer::Names();
  Throw(ErrorKind::kConfig, "there is no initializer '{}'{}", name,
        Nearest(name, names).empty() ? format("; use {}", join(names, ", "))
                                     : DidYouMean(name, names));
}

// A JSON value as the text of a parameter.
std::string ParamText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_null()) return "None";
  return value.dump();
}

}  // namespace

std::unique_ptr<Initializer> Initializer::Create(std::string_view name, const Kwargs& kwargs) {
  return Find(name).make(kwargs);
}

std::unique_ptr<Initializer> Initializer::FromAttribute(std::string_view text) {
  if (text.empty() || (text.front() != '[' && text.front() != '"')) return Create(text);
  const Expected<Json, Refusal> read = ReadJson<Json>(text);
  const Json json = read ? *read : Json();
  if (json.is_string()) return Create(json.get<std::string>());
  const bool named = json.is_array() && !json.empty() && json[0].is_string();
  if (!named || json.size() > 2 || (json.size() == 2 && !json[1].is_object())) {
    Throw(ErrorKind::kConfig,
          "init = '{}': expected a name, or a list such as [\"xavier\", {{\"magnitude\": \"2\"}}]",
          text);
  }
  Kwargs kwargs;
  if (json.size() == 2) {
    for (const auto& [key, value] : json[1].items()) kwargs.emplace_back(key, ParamText(value));
  }
  return Create(json[0].get<std::string>(), kwargs);
}

std::vector<std::string> Initializer::Names() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::vector<FieldInfo> Initializer::Describe(std::string_view name) {
  return Find(name).describe();
}

}  // namespace mxtrain
