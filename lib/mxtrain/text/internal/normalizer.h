// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tokenizer.json does with text before it is split: Unicode's normal forms, case, accents,
// replacements.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/internal/json_node.h"

namespace mxtrain::text {

// A sequence of steps; none leaves text as it is. Any thread may use it.
class MXTRAIN_API Normalizer {
 public:
  Normalizer() = default;
  // Of the value of "normalizer". Throws kData for a kind that is not covered, by its name.
  explicit Normalizer(const JsonNode& node);

  bool empty() const { return steps_.empty(); }
  // Of valid UTF-8.
  std::string Apply(std::string_view text) const;

 private:
  using Step = std::function<std::string(std::string_view)>;
  void AddSteps(const JsonNode& node);

  std::vector<Step> steps_;
};

}  // namespace mxtrain::text
