// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPT-2's vocabularies write a byte as a visible character: printable ones of Latin-1 as
// themselves, the other 68 as U+0100 and following, so that a space is "Ġ".
#include <optional>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

MXTRAIN_API uint32_t CharacterOfByte(unsigned char byte);
// "Ġthe" of " the".
std::string VisibleBytes(std::string_view bytes);
// The bytes of such a text; nothing if it has another character.
MXTRAIN_API std::optional<std::string> BytesOfVisible(std::string_view token);

}  // namespace mxtrain::text
