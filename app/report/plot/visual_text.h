// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text as it is drawn from left to right: letters of scripts that are written from the right are
// put in the order in which they stand, and those of Arabic take the shape of their place in the
// word. A part of Unicode's bidirectional algorithm (UAX #9) and of Arabic joining (The Unicode
// Standard, section 9.2), for lines that are laid out from the left: no explicit embeddings, and
// scripts whose letters are composed otherwise (Devanagari, Thai) are drawn letter by letter.
#include <string>
#include <string_view>

namespace mxtrain::plot {

// The characters of UTF-8 text; each byte that is no part of one counts as U+FFFD.
std::u32string CharactersOf(std::string_view text);
std::string Utf8Of(std::u32string_view text);

// Joined letters become characters of the presentation forms (U+FB50 to U+FEFC), so there may be
// fewer. Characters that are not seen (variation selectors, joiners, marks of direction) are gone.
std::u32string VisualText(std::string_view text);

}  // namespace mxtrain::plot
