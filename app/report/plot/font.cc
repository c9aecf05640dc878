// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/font.h"

#include <optional>

#include "app/report/plot/face.h"
#include "app/report/plot/name_that_fits.h"
#include "app/report/plot/visual_text.h"

namespace mxtrain::plot {
namespace {

constexpr char32_t kEllipsis = 0x2026;

// Calls `on_glyph(glyph, x)` for each character, x in units of the font size; returns the end of
// the line.
template <typename OnGlyph>
double Walk(std::string_view text, bool drawn, OnGlyph on_glyph) {
  double x = 0;
  std::optional<Glyph> before;
  for (const char32_t character : VisualText(text)) {
    const Glyph glyph = GlyphOf(character, drawn);
    if (before) x += KerningOf(*before, glyph);
    on_glyph(glyph, x);
    x += AdvanceOf(glyph);
    before = glyph;
  }
  return x;
}

}  // namespace

double TextWidth(std::string_view text, double size) {
  return Walk(text, /*drawn=*/false, [](const Glyph&, double) {}) * size;
}

std::vector<std::vector<Point>> TextOutline(std::string_view text, double size) {
  std::vector<std::vector<Point>> contours;
  Walk(text, /*drawn=*/true, [&](const Glyph& glyph, double x) {
    for (std::vector<Point>& contour : OutlineOf(glyph)) {
      for (Point& p : contour) p = {size * (x + p.x), size * p.y};
      contours.push_back(std::move(contour));
    }
  });
  return contours;
}

std::string FitText(const std::string& text, double size, double width) {
  if (TextWidth(text, size) <= width) return text;
  const std::u32string all = CharactersOf(text);
  std::string fits;
  for (size_t count = 0; count < all.size(); ++count) {
    const std::string shorter = Utf8Of(all.substr(0, count) + kEllipsis);
    if (count > 0 && TextWidth(shorter, size) > width) break;
    fits = shorter;
  }
  return fits;
}

std::string FitName(const std::string& name, double size, double width) {
  return NameThatFits(
      name, [size, width](std::string_view text) { return TextWidth(text, size) <= width; });
}

}  // namespace mxtrain::plot
