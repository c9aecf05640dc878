// SPDX-License-Identifier: Apache-2.0
#include "app/report/plot/font.h"

#include <algorithm>
#include <cstdint>

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_truetype.h>
#pragma GCC diagnostic pop

// The font file, under the linker's symbol names (app/CMakeLists.txt).
extern "C" const unsigned char _binary_DejaVuSans_ttf_start[];

namespace mxtrain::plot {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

const stbtt_fontinfo& Font() {
  static const stbtt_fontinfo font = [] {
    stbtt_fontinfo info;
    stbtt_InitFont(&info, _binary_DejaVuSans_ttf_start, 0);
    return info;
  }();
  return font;
}

// Removes and returns the first code point of `text`.
char32_t TakeCodePoint(std::string_view* text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>((*text)[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t code = length == 1 ? first : first & (0x7Fu >> length);
  bool whole = first < 0x80 || (first >= 0xC2 && first < 0xF5 && length <= text->size());
  for (size_t i = 1; whole && i < length; ++i) {
    whole = (byte(i) & 0xC0) == 0x80;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  text->remove_prefix(whole ? length : 1);
  return whole ? code : kReplacement;
}

// Calls `glyph(index, x)` for each character, x in font units; returns the end of the line.
template <typename OnGlyph>
int Walk(std::string_view text, OnGlyph on_glyph) {
  int x = 0, before = 0;
  while (!text.empty()) {
    const int glyph = stbtt_FindGlyphIndex(&Font(), static_cast<int>(TakeCodePoint(&text)));
    int advance = 0, bearing = 0;
    stbtt_GetGlyphHMetrics(&Font(), glyph, &advance, &bearing);
    if (before) x += stbtt_GetGlyphKernAdvance(&Font(), before, glyph);
    on_glyph(glyph, x);
    x += advance;
    before = glyph;
  }
  return x;
}

double Scale(double size) {
  return stbtt_ScaleForMappingEmToPixels(&Font(), static_cast<float>(size));
}

// Appends a TrueType curve (quadratic) as line segments, or a straight line, to the contour.
void AddCurve(const stbtt_vertex& v, Point to, Point control, std::vector<Point>* contour) {
  constexpr int kPieces = 6;
  if (v.type == STBTT_vcurve) {
    const Point from = contour->back();
    for (int i = 1; i < kPieces; ++i) {
      const double t = static_cast<double>(i) / kPieces, a = (1 - t) * (1 - t), b = 2 * t * (1 - t),
                   c = t * t;
      contour->push_back(
          {a * from.x + b * control.x + c * to.x, a * from.y + b * control.y + c * to.y});
    }
  }
  contour->push_back(to);
}

}  // namespace

double TextWidth(std::string_view text, double size) {
  return Walk(text, [](int, int) {}) * Scale(size);
}

std::vector<std::vector<Point>> TextOutline(std::string_view text, double size) {
  const double scale = Scale(size);
  std::vector<std::vector<Point>> contours;
  Walk(text, [&](int glyph, int x) {
    stbtt_vertex* vertices = nullptr;
    const int count = stbtt_GetGlyphShape(&Font(), glyph, &vertices);
    const auto at = [&](int dx, int dy) { return Point{scale * (x + dx), -scale * dy}; };
    for (int i = 0; i < count; ++i) {
      const stbtt_vertex& v = vertices[i];
      if (v.type == STBTT_vmove) {
        contours.push_back({at(v.x, v.y)});
      } else {
        AddCurve(v, at(v.x, v.y), at(v.cx, v.cy), &contours.back());
      }
    }
    stbtt_FreeShape(&Font(), vertices);
  });
  return contours;
}

std::string FitText(const std::string& text, double size, double width) {
  if (TextWidth(text, size) <= width) return text;
  const std::string ellipsis = "\u2026";
  std::string_view rest = text;
  std::string fits;
  while (!rest.empty()) {
    const std::string_view before = rest;
    TakeCodePoint(&rest);
    const std::string longer = fits + std::string(before.substr(0, before.size() - rest.size()));
    if (TextWidth(longer + ellipsis, size) > width) break;
    fits = longer;
  }
  return fits + ellipsis;
}

}  // namespace mxtrain::plot
