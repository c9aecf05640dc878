// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON from outside: files of other programs, folders of runs. Only sources include this header, as
// base/json.h.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/expected.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/macros.h"

namespace mxtrain {

// Reads a text whose writer is not trusted: it may be of any size, but is refused where it is
// nested more than 64 deep, since the library copies and prints values by recursion, or an object
// has a key twice, or, as Json, more than 10,000 keys. A refusal is a phrase such as "it is not
// JSON at its byte 7".
template <typename J>
Expected<J, Refusal> ReadJson(std::string_view text);
extern template MXTRAIN_API Expected<FileJson, Refusal> ReadJson(std::string_view text);
extern template MXTRAIN_API Expected<Json, Refusal> ReadJson(std::string_view text);

// The same; throws kData, "NAME: REASON".
template <typename J = FileJson>
J ReadJsonOf(const std::string& name, std::string_view text);
extern template MXTRAIN_API FileJson ReadJsonOf(const std::string& name, std::string_view text);
extern template MXTRAIN_API Json ReadJsonOf(const std::string& name, std::string_view text);

// The value of an integer from `least` to `most`; nothing of anything else. The library's get<int>
// wraps what is larger, and takes fractions.
template <typename J>
std::optional<int64_t> IntegerIn(const J& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned() && value.template get<uint64_t>() > kMost) return std::nullopt;
  const auto number = value.template get<int64_t>();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace mxtrain
