// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only include of the JSON library. Only sources include this header, never public headers.
#include <nlohmann/json.hpp>

namespace mxtrain {
using Json = nlohmann::ordered_json;  // keeps insertion order; linear search
// For external input: parse time is linear in its size, whatever the keys.
using FileJson = nlohmann::json;
}  // namespace mxtrain
