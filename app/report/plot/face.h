// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fonts: DejaVu Sans (Debian's fonts-dejavu-core), embedded in the program, for Latin, Greek,
// Cyrillic, Arabic and more; for characters that it lacks, the fonts of this machine. Thread-safe.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/plot/drawing.h"

namespace mxtrain::plot {

class Face;

// A character in the first font that has it. Lengths are in units of the font size.
struct Glyph {
  const Face* face;  // lives as long as the program
  int index;         // 0: no font has it; it is drawn as an empty box
};
// Of this machine's fonts. `drawn`: into an image, so that a character that is missing is missed;
// who only measures a text may leave its drawing to a browser.
Glyph GlyphOf(char32_t character, bool drawn);

double AdvanceOf(const Glyph& glyph);
// Added to the advance between two glyphs; 0 between those of different fonts.
double KerningOf(const Glyph& left, const Glyph& right);
// From the origin on the baseline; y goes down. Fill with the non-zero winding rule.
std::vector<std::vector<Point>> OutlineOf(const Glyph& glyph);

// The embedded font and others, each opened when a character is in none before it.
class FontSet {
 public:
  // FindFontFiles, called when the first character is not in the embedded font.
  FontSet();
  explicit FontSet(std::vector<std::string> files);
  ~FontSet();
  FontSet(const FontSet&) = delete;
  FontSet& operator=(const FontSet&) = delete;

  // The glyph's font lives as long as this. `drawn`: as of GlyphOf.
  Glyph Find(char32_t character, bool drawn);
  // Characters that were to be drawn and that no font has, by their numbers; the first few dozen.
  std::u32string missing() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

// Of this machine's fonts, since the program began.
std::u32string MissingCharacters();
// What to tell of them, with the fonts that have them; empty without any.
std::string NoteOfMissing(std::u32string_view characters);

// Font files of this machine, best first: upright sans-serif ones before others. They are looked
// for where fontconfig looks by default: in fonts/ of $XDG_DATA_HOME and of the folders of
// $XDG_DATA_DIRS, and in ~/.fonts. What cannot be read is skipped.
std::vector<std::string> FindFontFiles();

}  // namespace mxtrain::plot
