#pragma once
// The one home of the JSON library. Only sources include this header, never other public headers.
#include <nlohmann/json.hpp>

namespace mxtrain {
using Json = nlohmann::ordered_json;  // keys stay in the order in which they were written, and are looked for one after the other
using FileJson = nlohmann::json;      // for texts that come from outside: reading one takes time in proportion to it, whatever its keys
}  // namespace mxtrain
