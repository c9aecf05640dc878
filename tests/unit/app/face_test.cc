// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/face.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "app/report/plot/visual_text.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::plot {
namespace {

void Put(std::string* to, uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    *to += static_cast<char>(value >> shift & 0xFF);
}
std::string Words16(std::initializer_list<int> words) {
  std::string bytes;
  for (const int word : words) Put(&bytes, static_cast<uint32_t>(word) & 0xFFFF, 2);
  return bytes;
}

// A TrueType font of 1000 units with two glyphs: nothing, and a square of 100 to 900 that stands
// for `character` and is 1000 wide.
std::string SquareFont(char32_t character) {
  const std::string square = Words16({1, 100, 100, 900, 900, 3, 0}) + std::string(4, '\x01') +
                             Words16({100, 800, 0, -800}) + Words16({100, 0, 800, 0});
  std::string cmap = Words16({0, 1, 3, 10, 0, 12, 12, 0});
  for (const uint32_t value : {28u, 0u, 1u}) Put(&cmap, value, 4);
  for (const uint32_t value : {uint32_t{character}, uint32_t{character}, 1u}) Put(&cmap, value, 4);
  std::string head(54, '\0');
  head.replace(18, 2, Words16({1000}));  // unitsPerEm
  head.replace(50, 2, Words16({1}));     // offsets of glyphs have four bytes
  std::string hhea(36, '\0');
  hhea.replace(4, 4, Words16({900, -100}));
  hhea.replace(34, 2, Words16({2}));
  std::string loca;
  for (const size_t offset : {size_t{0}, size_t{0}, square.size()})
    Put(&loca, static_cast<uint32_t>(offset), 4);
  const std::pair<std::string, std::string> tables[] = {{"cmap", cmap},
                                                        {"glyf", square},
                                                        {"head", head},
                                                        {"hhea", hhea},
                                                        {"hmtx", Words16({500, 0, 1000, 100})},
                                                        {"loca", loca},
                                                        {"maxp", Words16({1, 0, 2})}};
  std::string font = Words16({1, 0, 7, 64, 2, 48}), bodies;
  for (const auto& [tag, body] : tables) {
    font += tag;
    Put(&font, 0, 4);
    Put(&font, static_cast<uint32_t>(12 + 16 * std::size(tables) + bodies.size()), 4);
    Put(&font, static_cast<uint32_t>(body.size()), 4);
    bodies += body;
    bodies.resize((bodies.size() + 3) / 4 * 4);
  }
  return font + bodies;
}

constexpr char32_t kPrivate = 0xF8D0, kOther = 0xF8D1;  // in no font that is installed

}  // namespace

TEST_CASE("a character that the embedded font lacks is drawn by the first font that has it") {
  const test::TempDir dir;
  dir.Write("square.ttf", SquareFont(kPrivate));
  dir.Write("broken.ttf", SquareFont(kPrivate).substr(0, 300));
  dir.Write("text.ttf", std::string(1000, 'x'));
  dir.Write("empty.ttf", "");
  FontSet fonts({dir.path("nowhere.ttf"), dir.path("text.ttf"), dir.path("empty.ttf"),
                 dir.path("broken.ttf"), dir.path("square.ttf")});
  const Glyph letter = fonts.Find('a', true), square = fonts.Find(kPrivate, true);
  CHECK(letter.index != 0);
  REQUIRE(square.index == 1);
  CHECK(square.face != letter.face);
  CHECK(AdvanceOf(square) == doctest::Approx(1));
  CHECK(KerningOf(letter, square) == 0);
  const auto outline = OutlineOf(square);
  REQUIRE(outline.size() == 1);
  for (const Point& p : outline[0]) {
    CHECK((p.x == doctest::Approx(0.1) || p.x == doctest::Approx(0.9)));
    CHECK((p.y == doctest::Approx(-0.1) || p.y == doctest::Approx(-0.9)));
  }
  CHECK(fonts.missing().empty());
  CHECK(fonts.Find(kOther, false).index == 0);
  CHECK(fonts.Find(kOther, false).face == letter.face);
  CHECK(fonts.missing().empty());  // it was only measured
  CHECK(fonts.Find(kOther, true).index == 0);
  CHECK(fonts.missing() == std::u32string{kOther});
}

TEST_CASE("fonts are looked for in the folders of data, upright ones without serifs first") {
  const test::TempDir dir;
  for (const char* name : {"NotoSerif-Regular.ttf", "NotoSans-Bold.ttf", "NotoSans-Regular.ttf"})
    dir.Write(std::string("fonts/deep/") + name, "");
  dir.Write("fonts/notes.txt", "");
  const char* const before = std::getenv("XDG_DATA_HOME");
  const std::string saved = before ? before : "";
  setenv("XDG_DATA_HOME", dir.path("").c_str(), 1);
  std::vector<std::string> names;
  for (const std::string& file : FindFontFiles()) {
    if (file.starts_with(dir.path("")) && !file.ends_with("/"))
      names.push_back(file.substr(file.rfind('/') + 1));
  }
  if (before)
    setenv("XDG_DATA_HOME", saved.c_str(), 1);
  else
    unsetenv("XDG_DATA_HOME");
  CHECK(names == std::vector<std::string>{"NotoSans-Regular.ttf", "NotoSerif-Regular.ttf",
                                          "NotoSans-Bold.ttf"});
}

TEST_CASE("the note of missing characters names fonts that have them") {
  CHECK(NoteOfMissing(U"").empty());
  CHECK(NoteOfMissing(U"帽子").find("no font of this machine has 帽子, ") == 0);
  CHECK(NoteOfMissing(U"帽子").find("fonts-noto-cjk") != std::string::npos);
  CHECK(NoteOfMissing(U"👒").find("fonts-symbola") != std::string::npos);
  CHECK(NoteOfMissing(U"ก").find("fonts-noto-core") != std::string::npos);
}

}  // namespace mxtrain::plot
