// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "app/report/plot/drawing.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"

namespace mxtrain::plot {
namespace {

std::string Hex(Colour c) {
  return format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue);
}

// Two decimals, without trailing zeros.
std::string Number(double value) {
  std::string text = format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string PointList(const std::vector<Point>& points) {
  std::string text;
  for (const Point& p : points)
    text += format("{}{},{}", text.empty() ? "" : " ", Number(p.x), Number(p.y));
  return text;
}

std::string Base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u;
    };
    const uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string Element(const Drawing::Line& line) {
  std::string dashes;
  for (double d : line.stroke.dashes) dashes += (dashes.empty() ? "" : " ") + Number(d);
  return format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
      PointList(line.points), Hex(line.stroke.colour), Number(line.stroke.width),
      dashes.empty() ? " stroke-linejoin=\"round\"" : format(" stroke-dasharray=\"{}\"", dashes));
}

std::string Element(const Drawing::Area& area) {
  const std::string opacity =
      area.opacity < 1 ? format(" fill-opacity=\"{}\"", Number(area.opacity)) : "";
  const std::string shape = format("<polygon points=\"{}\" fill=\"{}\"{}", PointList(area.points),
                                   Hex(area.fill), opacity);
  return area.tooltip.empty()
             ? shape + "/>\n"
             : format("{}><title>{}</title></polygon>\n", shape, EscapeXml(area.tooltip));
}

std::string Element(const Drawing::Text& text) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  const std::string x = Number(text.at.x), y = Number(text.at.y);
  const std::string turned =
      text.style.upwards ? format(" transform=\"rotate(-90 {} {})\"", x, y) : "";
  return format(
      "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y,
      Number(text.style.size), kAnchors[static_cast<int>(text.style.anchor)],
      Hex(text.style.colour), turned, EscapeXml(text.text));
}

std::string Element(const Drawing::Raster& p) {
  return format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
      "image-rendering=\"pixelated\" href=\"{}\"/>\n",
      Number(p.at.x), Number(p.at.y), Number(p.width), Number(p.height),
      PngDataUri(io::EncodePng(p.image)));
}

}  // namespace

std::string ToSvg(const Drawing& drawing) {
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" "
      "font-family=\"DejaVu Sans, Verdana, Noto Sans, sans-serif\">\n<rect width=\"100%\" "
      "height=\"100%\" "
      "fill=\"white\"/>\n",
      Number(drawing.width()), Number(drawing.height()));
  for (const Drawing::Shape& shape : drawing.shapes()) {
    svg += std::visit([](const auto& s) { return Element(s); }, shape);
  }
  return svg + "</svg>\n";
}

bool IsDrawing(std::string_view svg) {
  static constexpr std::string_view kElements[] = {"svg",  "rect",  "polyline", "polygon",
                                                   "text", "title", "image"};
  static constexpr std::string_view kAttributes[] = {"xmlns",
                                                     "viewBox",
                                                     "width",
                                                     "height",
                                                     "font-family",
                                                     "fill",
                                                     "points",
                                                     "stroke",
                                                     "stroke-width",
                                                     "stroke-linejoin",
                                                     "stroke-dasharray",
                                                     "fill-opacity",
                                                     "x",
                                                     "y",
                                                     "font-size",
                                                     "text-anchor",
                                                     "transform",
                                                     "preserveAspectRatio",
                                                     "image-rendering",
                                                     "href"};
  constexpr std::string_view kPng = "data:image/png;base64,";
  const auto take_name = [&svg] {
    const size_t end = std::min(svg.find_first_of(" />=\"\n"), svg.size());
    const std::string_view name = svg.substr(0, end);
    svg.remove_prefix(end);
    return name;
  };
  while (true) {
    const size_t begin = svg.find('<');
    if (begin == std::string_view::npos) return true;
    svg.remove_prefix(begin + 1);
    if (svg.starts_with('/')) svg.remove_prefix(1);
    if (std::ranges::find(kElements, take_name()) == std::end(kElements)) return false;
    while (svg.starts_with(' ')) {
      svg.remove_prefix(1);
      const std::string_view name = take_name();
      if (std::ranges::find(kAttributes, name) == std::end(kAttributes)) return false;
      if (!svg.starts_with("=\"")) return false;
      svg.remove_prefix(2);
      const size_t end = svg.find('"');
      if (end == std::string_view::npos) return false;
      const std::string_view value = svg.substr(0, end);
      if (name == "href" && !value.starts_with(kPng)) return false;
      if (value.find("url(") != std::string_view::npos) return false;
      svg.remove_prefix(end + 1);
    }
    if (svg.starts_with('/')) svg.remove_prefix(1);
    if (!svg.starts_with('>')) return false;
  }
}

std::string EscapeXml(const std::string& text) {
  // The JSON writer replaces invalid UTF-8; reading back undoes its other escapes.
  const std::string clean =
      Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
          .get<std::string>();
  std::string out;
  for (char c : clean) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML allows no other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string PngDataUri(std::string_view png) {
  return "data:image/png;base64," + Base64(png);
}

}  // namespace mxtrain::plot
