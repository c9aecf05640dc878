// SPDX-License-Identifier: Apache-2.0
#pragma once
// Comparing a net with the config.json of Hugging Face's transformers beside published weights.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"

namespace mxtrain::inference {

// Collects what a config.json of published weights has otherwise than a net: sentences, of a key
// each. A key that is not there counts as its default in transformers.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& json) : json_(json) {}

  bool Has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  static double NumberIn(const Json& json, const char* key, double without) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : without;
  }
  static std::string TextIn(const Json& json, const char* key, const std::string& without) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : without;
  }
  void Only(const char* key, double wanted) {
    if (const double there = NumberIn(json_, key, wanted); there != wanted)
      Add(format("{} is {:.9g}, and only {:.9g} is covered", key, there, wanted));
  }
  void Number(const char* key, double without, double own, const char* variable) {
    const double there = NumberIn(json_, key, without);
    if (std::abs(there - own) <= 1e-9 * std::abs(own)) return;
    Add(format("{} is {:.9g}, and the net has {:.9g} (vars.{})", key, there, own, variable));
  }
  void Truth(const char* key, bool without, bool own, const std::string& why) {
    const bool there = Has(key) && json_[key].is_boolean() ? json_[key].get<bool>() : without;
    if (there != own) Add(format("{} is {}, {}", key, there, why));
  }
  // A text that must be this one.
  void Text(const char* key, const std::string& wanted) {
    if (!Has(key) || json_[key] == wanted) return;
    Add(format("{} is {}, and only {} is covered", key, json_[key].dump(), wanted));
  }
  // What must be absent, or null.
  void Absent(const char* key) {
    if (Has(key)) Add(format("{} is {}, which is not covered", key, json_[key].dump()));
  }
  void Add(std::string difference) { differences_.push_back(std::move(difference)); }
  std::vector<std::string> Take() { return std::move(differences_); }

 private:
  const Json& json_;
  std::vector<std::string> differences_;
};

}  // namespace mxtrain::inference
