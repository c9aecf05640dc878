// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/text_lines/drawn_lines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/report/plot/font.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/image.h"

namespace mxtrain::tasks {
namespace {

constexpr uint64_t kLineStream = 0x7e87;

// Random numbers of one line, in call order.
class LineDraws {
 public:
  LineDraws(uint64_t seed, int64_t number) : seed_(seed), number_(static_cast<uint64_t>(number)) {}
  double Between(double low, double high) {
    if (next_ % 4 == 0) block_ = Philox(seed_, kLineStream, number_, next_ / 4);
    return low + (high - low) * static_cast<double>(UniformFromBits(block_.v[next_++ % 4]));
  }
  int Below(int count) { return std::min(count - 1, static_cast<int>(Between(0, count))); }

 private:
  uint64_t seed_, number_, next_ = 0;
  PhiloxBits block_{};
};

std::string DrawnWord(LineDraws& draws) {
  constexpr std::string_view kConsonants = "bcdfghjklmnpqrstvwxyz", kVowels = "aeiou";
  std::string word;
  const int letters = 3 + draws.Below(5);
  bool vowel = draws.Below(2) == 0;
  for (int i = 0; i < letters; ++i, vowel = !vowel) {
    const std::string_view from = vowel ? kVowels : kConsonants;
    word += from[static_cast<size_t>(draws.Below(static_cast<int>(from.size())))];
  }
  return word;
}
std::string DrawnNumber(LineDraws& draws) {
  std::string number;
  const int digits = 2 + draws.Below(5);
  for (int i = 0; i < digits; ++i) number += static_cast<char>('0' + draws.Below(10));
  return number;
}

std::string DrawnText(LineDraws& draws) {
  std::string text;
  const int parts = 1 + draws.Below(2);
  for (int i = 0; i < parts; ++i) {
    if (i > 0) text += ' ';
    text += draws.Below(2) == 0 ? DrawnWord(draws) : DrawnNumber(draws);
  }
  return text;
}

// The line as it is drawn at a size that others are made of: how much of each pixel is ink.
struct Ink {
  int height, width;
  std::vector<float> part;
  float At(double x, double y) const {
    const double fx = std::floor(x), fy = std::floor(y);
    const auto at = [this](int row, int column) -> double {
      if (row < 0 || row >= height || column < 0 || column >= width) return 0;
      return static_cast<double>(part[static_cast<size_t>(row) * static_cast<size_t>(width) +
                                      static_cast<size_t>(column)]);
    };
    const int column = static_cast<int>(fx), row = static_cast<int>(fy);
    const double rx = x - fx, ry = y - fy;
    return static_cast<float>((1 - ry) * ((1 - rx) * at(row, column) + rx * at(row, column + 1)) +
                              ry * ((1 - rx) * at(row + 1, column) + rx * at(row + 1, column + 1)));
  }
};

Ink InkOf(const std::string& text) {
  constexpr double kSize = 48, kAbove = 44, kBelow = 14;
  plot::Drawing drawing(std::ceil(plot::TextWidth(text, kSize)), kAbove + kBelow);
  drawing.AddText({0, kAbove}, text, {kSize, plot::Anchor::kStart, plot::kBlack, false});
  const io::Image image = plot::ToImage(drawing, 1);
  Ink ink{image.height, image.width, {}};
  for (size_t i = 0; i < image.pixels.size(); i += 3)
    ink.part.push_back(1 - static_cast<float>(image.pixels[i]) / 255);
  return ink;
}

io::Image DrawLine(const std::string& text, int size, LineDraws& draws) {
  const Ink ink = InkOf(text);
  const double height = draws.Between(0.375, 0.75) * size;
  const double scale = height / ink.height * draws.Between(0.75, 1);  // of the ink
  const double stretch = draws.Between(0.85, 1.15), angle = draws.Between(-0.04, 0.04),
               slant = draws.Between(-0.25, 0.25);
  const double dark = draws.Between(0, 110), light = draws.Between(160, 255);
  const bool inverted = draws.Below(4) == 0;
  const double noise = draws.Between(0, 18), slope = draws.Between(-40, 40);
  const double text_width = ink.width * scale * stretch;
  const int rows = std::max(8, static_cast<int>(height)),
            columns = static_cast<int>(text_width + height * draws.Between(0.3, 0.8));
  const double left = draws.Between(0.3, 0.7) * (columns - text_width),
               top = draws.Between(0.3, 0.7) * (rows - ink.height * scale);
  io::Image image;
  image.Resize(rows, columns, 1);
  constexpr int kSamples = 2;  // of a pixel, along each axis
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      double part = 0;
      for (int k = 0; k < kSamples * kSamples; ++k) {
        const double px = x + (k % kSamples + 0.5) / kSamples,
                     py = y + (k / kSamples + 0.5) / kSamples;
        // About the middle of the line.
        const double cx = px - columns / 2.0, cy = py - rows / 2.0;
        const double rx = cx + angle * cy + slant * cy + columns / 2.0,
                     ry = cy - angle * cx + rows / 2.0;
        part += static_cast<double>(
            ink.At((rx - left) / (scale * stretch) - 0.5, (ry - top) / scale - 0.5));
      }
      part /= kSamples * kSamples;
      const double paper = light + slope * (static_cast<double>(x) / columns - 0.5);
      double value = paper + (dark - paper) * part + draws.Between(-noise, noise);
      if (inverted) value = 255 - value;
      image.row(y)[x] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
  return image;
}

}  // namespace

SynthResult SynthesizeLines(const SynthRequest& request) {
  if (request.classes > 0)
    Throw(ErrorKind::kUsage, "--classes {}: lines of text have letters, no classes",
          request.classes);
  const int64_t val = ValidationCount(request);
  const std::filesystem::path folder = request.folder;
  std::string tables[2];
  for (std::string& table : tables) table = "image\ttext\n";
  for (int64_t i = 0; i < request.count && !request.stopped(); ++i) {
    const std::string part = i < val ? "val" : "train";
    if (i == 0 || i == val) MakeFolders((folder / part).string());
    LineDraws draws(request.seed, i);
    const std::string text = DrawnText(draws), name = format("{}/{:06}.png", part, i);
    const io::Image image = DrawLine(text, request.size, draws);
    FileAppender((folder / name).string(), FileAppender::Begin::kNew).Append(io::EncodePng(image));
    tables[i < val ? 1 : 0] += format("{}\t{}\n", name, text);
  }
  if (!request.stopped()) {
    WriteFileAtomically((folder / "train.tsv").string(), tables[0]);
    if (val > 0) WriteFileAtomically((folder / "val.tsv").string(), tables[1]);
  }
  return {request.count - val, val, {}};
}

}  // namespace mxtrain::tasks
