// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/shape_images.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <numbers>

#include "mxtrain/base/philox.h"

namespace mxtrain::tasks {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

// Random numbers for one image, in call order.
class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream, uint64_t number)
      : seed_(seed), stream_(stream), number_(number) {}
  float Uniform(float low, float high) {
    if (next_ % 4 == 0) block_ = Philox(seed_, stream_, number_, next_ / 4);
    return low + (high - low) * UniformFromBits(block_.v[next_++ % 4]);
  }
  int Integer(int low, int high) {
    return std::min(high, low + static_cast<int>(Uniform(0, static_cast<float>(high - low + 1))));
  }
  bool Chance(float p) { return Uniform(0, 1) < p; }

 private:
  uint64_t seed_, stream_, number_, next_ = 0;
  PhiloxBits block_{};
};

using Colour = std::array<float, 3>;

Colour AnyColour(Draws& draws) {
  return {draws.Uniform(0, 255), draws.Uniform(0, 255), draws.Uniform(0, 255)};
}

float Distance(const Colour& a, const Colour& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

Colour Mix(const Colour& a, const Colour& b, float t) {
  return {a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t};
}

// An image while it is drawn.
struct Canvas {
  int height, width;
  std::vector<Colour> pixels;
  Colour& at(int y, int x) {
    return pixels[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

// --- the shapes, within the unit circle

struct Corner {
  float x, y;
};

bool InPolygon(const std::vector<Corner>& corners, Corner p) {
  bool inside = false;
  for (size_t i = 0, j = corners.size() - 1; i < corners.size(); j = i++) {
    const Corner a = corners[i], b = corners[j];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x)
      inside = !inside;
  }
  return inside;
}

// Corners at alternating radii (1 and `inner`).
std::vector<Corner> Pointed(int points, float inner) {
  std::vector<Corner> corners;
  for (int i = 0; i < 2 * points; ++i) {
    const float angle = kPi * static_cast<float>(i) / static_cast<float>(points),
                radius = i % 2 ? inner : 1;
    corners.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return corners;
}

bool Disc(Corner p) {
  return std::hypot(p.x, p.y) <= 1;
}
bool Ring(Corner p) {
  return Disc(p) && std::hypot(p.x, p.y) >= 0.58f;
}
bool Square(Corner p) {
  return std::max(std::abs(p.x), std::abs(p.y)) <= 0.75f;
}
bool Triangle(Corner p) {
  static const std::vector<Corner> corners = Pointed(3, 0.5f);
  return InPolygon(corners, p);
}
bool Star(Corner p) {
  static const std::vector<Corner> corners = Pointed(5, 0.4f);
  return InPolygon(corners, p);
}
bool Cross(Corner p) {
  return std::max(std::abs(p.x), std::abs(p.y)) <= 0.95f &&
         std::min(std::abs(p.x), std::abs(p.y)) <= 0.26f;
}
bool Crescent(Corner p) {
  return Disc(p) && std::hypot(p.x - 0.5f, p.y) > 0.8f;
}
bool Bar(Corner p) {
  return std::abs(p.x) <= 0.97f && std::abs(p.y) <= 0.24f;
}

struct Shape {
  const char* name;
  bool (*inside)(Corner);
};
constexpr Shape kShapes[] = {{"disc", Disc},         {"ring", Ring}, {"square", Square},
                             {"triangle", Triangle}, {"star", Star}, {"cross", Cross},
                             {"crescent", Crescent}, {"bar", Bar}};

// --- what is drawn

// A linear gradient with waves; colours are between the two given ones, plus or minus `waves`.
struct Background {
  Colour from, to;
  float direction, waves, wave_direction, wave_length, phase;
};

Background DrawBackground(Draws& draws, Canvas* canvas) {
  Background b;
  b.from = AnyColour(draws);
  b.to = Mix(b.from, AnyColour(draws), draws.Uniform(0, 0.5f));
  b.direction = draws.Uniform(0, 2 * kPi);
  b.waves = draws.Uniform(0, 14);
  b.wave_direction = draws.Uniform(0, 2 * kPi);
  b.wave_length = draws.Uniform(3, 14);
  b.phase = draws.Uniform(0, 2 * kPi);
  const float diagonal =
      std::hypot(static_cast<float>(canvas->height), static_cast<float>(canvas->width));
  for (int y = 0; y < canvas->height; ++y) {
    for (int x = 0; x < canvas->width; ++x) {
      const float u = static_cast<float>(x) - static_cast<float>(canvas->width) / 2,
                  v = static_cast<float>(y) - static_cast<float>(canvas->height) / 2;
      const float t = 0.5f + (u * std::cos(b.direction) + v * std::sin(b.direction)) / diagonal;
      const float along = u * std::cos(b.wave_direction) + v * std::sin(b.wave_direction);
      const float wave = b.waves * std::sin(2 * kPi * along / b.wave_length + b.phase);
      Colour colour = Mix(b.from, b.to, t);
      for (float& c : colour) c += wave;
      canvas->at(y, x) = colour;
    }
  }
  return b;
}

// A thin line or, of length 0, a dot.
void DrawStroke(Draws& draws, float size, float length, Canvas* canvas) {
  const Colour colour = AnyColour(draws);
  const float radius =
      std::max(0.5f, size * draws.Uniform(0.008f, 0.02f)) * (length == 0 ? 1.5f : 1);
  const float angle = draws.Uniform(0, 2 * kPi),
              x0 = draws.Uniform(0, static_cast<float>(canvas->width)),
              y0 = draws.Uniform(0, static_cast<float>(canvas->height));
  const float dx = std::cos(angle), dy = std::sin(angle);
  for (int y = 0; y < canvas->height; ++y) {
    for (int x = 0; x < canvas->width; ++x) {
      const float u = static_cast<float>(x) + 0.5f - x0, v = static_cast<float>(y) + 0.5f - y0;
      const float along = std::clamp(u * dx + v * dy, 0.0f, length);
      const float cover =
          std::clamp(radius + 0.5f - std::hypot(u - along * dx, v - along * dy), 0.0f, 1.0f);
      if (cover > 0) canvas->at(y, x) = Mix(canvas->at(y, x), colour, cover);
    }
  }
}

// A colour that differs from both ends of the background.
Colour ContrastTo(const Background& b, Draws& draws) {
  Colour best{};
  float best_distance = -1;
  for (int i = 0; i < 16; ++i) {
    const Colour colour = AnyColour(draws);
    const float distance = std::min(Distance(colour, b.from), Distance(colour, b.to));
    if (distance > 130) return colour;
    if (distance > best_distance) best = colour, best_distance = distance;
  }
  return best;
}

// The pixels that a shape covers mostly, hidden or not.
struct Extent {
  int left = INT_MAX, top = INT_MAX, right = 0, bottom = 0;  // edges
  int64_t pixels = 0;

  void Add(int y, int x) {
    left = std::min(left, x), top = std::min(top, y);
    right = std::max(right, x + 1), bottom = std::max(bottom, y + 1);
    ++pixels;
  }
};

// The radius is between `least` and `most` of the shorter side. `owners`: where the shape covers
// most of a pixel becomes `value`; null: not asked for.
Extent DrawShape(const Shape& shape, float least, float most, const Background& background,
                 Draws& draws, Canvas* canvas, io::Image* owners = nullptr, uint8_t value = 0) {
  const float side = static_cast<float>(std::min(canvas->height, canvas->width));
  const float radius = side * draws.Uniform(least, most), angle = draws.Uniform(0, 2 * kPi),
              stretch = draws.Uniform(0.94f, 1.06f);
  const float reach = radius * std::max(stretch, 1 / stretch);  // not larger than half of the side
  const float cx = draws.Uniform(reach, static_cast<float>(canvas->width) - reach),
              cy = draws.Uniform(reach, static_cast<float>(canvas->height) - reach);
  const Colour colour = ContrastTo(background, draws),
               shade = Mix(colour, AnyColour(draws), draws.Uniform(0, 0.25f));
  const float dx = std::cos(angle), dy = std::sin(angle);
  constexpr int kSamples = 3;
  Extent extent;
  for (int y = 0; y < canvas->height; ++y) {
    for (int x = 0; x < canvas->width; ++x) {
      int hits = 0;
      for (int s = 0; s < kSamples * kSamples; ++s) {
        const int row = s / kSamples, column = s % kSamples;
        const float u =
            (static_cast<float>(x) + (static_cast<float>(column) + 0.5f) / kSamples - cx) / radius;
        const float v =
            (static_cast<float>(y) + (static_cast<float>(row) + 0.5f) / kSamples - cy) / radius;
        hits += shape.inside({(u * dx + v * dy) * stretch, (v * dx - u * dy) / stretch});
      }
      if (hits == 0) continue;
      if (2 * hits > kSamples * kSamples) {
        extent.Add(y, x);
        if (owners) owners->row(y)[x] = value;
      }
      const float t = std::clamp(0.5f + (static_cast<float>(x) - cx) / (2 * radius), 0.0f, 1.0f);
      canvas->at(y, x) = Mix(canvas->at(y, x), Mix(colour, shade, t),
                             static_cast<float>(hits) / (kSamples * kSamples));
    }
  }
  return extent;
}

void AddNoise(Draws& draws, Canvas* canvas) {
  const float amount = draws.Uniform(0, 16);
  for (Colour& colour : canvas->pixels) {
    for (float& c : colour) c += draws.Uniform(-amount, amount);
  }
}

struct Scenery {
  Canvas canvas;
  Background background;
  float side;
};

// The format of the file, and an image without shapes.
Scenery BeginImage(Draws& draws, int size, SynthImage* image) {
  image->jpeg = draws.Chance(0.5f);
  image->quality = draws.Integer(75, 95);
  const float side_wanted = static_cast<float>(size) * draws.Uniform(0.8f, 1.35f),
              proportion = draws.Uniform(0.9f, 1.1f);
  Scenery scenery{
      {static_cast<int>(side_wanted * proportion), static_cast<int>(side_wanted / proportion), {}},
      {},
      0};
  Canvas& canvas = scenery.canvas;
  canvas.pixels.resize(static_cast<size_t>(canvas.height) * static_cast<size_t>(canvas.width));
  const float side = static_cast<float>(std::min(canvas.height, canvas.width));
  scenery.side = side;
  scenery.background = DrawBackground(draws, &canvas);
  for (int i = draws.Integer(1, 4); i > 0; --i)
    DrawStroke(draws, side, side * draws.Uniform(0.2f, 0.7f), &canvas);
  for (int i = draws.Integer(2, 8); i > 0; --i) DrawStroke(draws, side, 0, &canvas);
  return scenery;
}

void EndImage(Draws& draws, Canvas* canvas, SynthImage* image) {
  AddNoise(draws, canvas);
  image->image.Resize(canvas->height, canvas->width, 3);
  for (size_t i = 0; i < canvas->pixels.size(); ++i) {
    for (size_t c = 0; c < 3; ++c)
      image->image.pixels[3 * i + c] =
          static_cast<uint8_t>(std::lround(std::clamp(canvas->pixels[i][c], 0.0f, 255.0f)));
  }
}

}  // namespace

const std::vector<std::string>& ShapeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Shape& shape : kShapes) list.emplace_back(shape.name);
    return list;
  }();
  return names;
}

std::string SynthImage::Bytes() const {
  return jpeg ? io::EncodeJpeg(image, quality) : io::EncodePng(image);
}

SynthImage DrawSynthImage(uint64_t seed, size_t shape, int64_t number, int size) {
  Draws draws(seed, StreamOf(kShapes[shape].name), static_cast<uint64_t>(number));
  SynthImage image;
  Scenery scenery = BeginImage(draws, size, &image);
  DrawShape(kShapes[shape], 0.26f, 0.42f, scenery.background, draws, &scenery.canvas);
  EndImage(draws, &scenery.canvas, &image);
  return image;
}

SynthScene DrawSynthScene(uint64_t seed, size_t shapes, int64_t number, int size) {
  Draws draws(seed, StreamOf("scene"), static_cast<uint64_t>(number));
  SynthScene scene;
  Scenery scenery = BeginImage(draws, size, &scene.image);
  io::Image owners;  // of each pixel the last shape on it, from 1
  owners.Resize(scenery.canvas.height, scenery.canvas.width, 1);
  std::ranges::fill(owners.pixels, uint8_t{0});
  std::vector<std::pair<size_t, Extent>> drawn;
  for (int i = draws.Integer(1, 4); i > 0; --i) {
    const auto shape = static_cast<size_t>(draws.Integer(0, static_cast<int>(shapes) - 1));
    drawn.emplace_back(
        shape, DrawShape(kShapes[shape], 0.14f, 0.26f, scenery.background, draws, &scenery.canvas,
                         &owners, static_cast<uint8_t>(drawn.size() + 1)));
  }
  std::vector<int64_t> seen(drawn.size() + 1);
  scene.classes = owners;
  for (uint8_t& pixel : scene.classes.pixels) {
    ++seen[pixel];
    if (pixel > 0) pixel = static_cast<uint8_t>(drawn[pixel - 1].first + 1);
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto& [shape, extent] = drawn[i];
    if (2 * seen[i + 1] < extent.pixels) continue;
    scene.objects.push_back({shape, extent.left, extent.top, extent.right, extent.bottom});
  }
  EndImage(draws, &scenery.canvas, &scene.image);
  return scene;
}

}  // namespace mxtrain::tasks
