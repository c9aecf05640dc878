// SPDX-License-Identifier: Apache-2.0
// Large images in tiles: where they lie, and that images, masks and boxes are cut alike.
#include "mxtrain/io/tiles.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "mxtrain/io/internal/tiled_images.h"
#include "tests/support/error_message.h"
#include "tests/support/scenes.h"

namespace mxtrain::test {
namespace {

std::shared_ptr<const Scenes> FourScenes() {
  return std::make_shared<Scenes>(
      std::vector<std::pair<int, int>>{{40, 61}, {16, 100}, {0, 0}, {33, 16}});
}

constexpr int kTileSide = 16;

struct Cut {
  std::vector<float> pixels, classes, boxes;
  bool operator==(const Cut&) const = default;
};
struct Cuts {
  std::vector<std::pair<int64_t, Cut>> examples;  // by index
  std::vector<std::string> bad;
};

Cuts CutsOf(const std::shared_ptr<const Source>& source, Kwargs kwargs) {
  const Runtime runtime = MakeRuntime();
  Kwargs all{{"batch_size", "3"}, {"mode", "evaluation"}};
  all.insert(all.end(), kwargs.begin(), kwargs.end());
  PipelineParam param = Param(all);
  param.origins = true;
  const auto iter = NewPipeline(const_cast<Runtime&>(runtime), source, {}, param);
  Cuts cuts;
  DataBatch batch;
  while (iter->Next(&batch)) {
    const std::vector<float> data = batch.data[0].ToVector(), mask = batch.label[0].ToVector(),
                             boxes = batch.label[1].ToVector();
    const auto part = [](const std::vector<float>& of, int64_t row, int64_t size) {
      return std::vector<float>(of.begin() + row * size, of.begin() + (row + 1) * size);
    };
    for (int64_t i = 0; i < batch.count; ++i) {
      const int64_t index = batch.index[static_cast<size_t>(i)];
      cuts.examples.emplace_back(
          index, Cut{part(data, i, 3 * kTileSide * kTileSide), part(mask, i, kTileSide * kTileSide),
                     part(boxes, i, 36)});
      const ImageOrigin& origin = batch.origins[static_cast<size_t>(i)];
      const Tile& tile = *source->TileOf(index);
      CHECK(origin.height() == tile.height);
      CHECK(origin.width() == tile.width);
      const Point corner = origin.map()({double(tile.box.x), double(tile.box.y)});
      CHECK(corner.x == 0);
      CHECK(corner.y == 0);
      CHECK(AreaOf(origin.seen()) == tile.box.height * tile.box.width);
    }
    for (const BadExample& bad : batch.bad) cuts.bad.push_back(bad.name);
  }
  return cuts;
}

}  // namespace

TEST_CASE("tiles along an axis: as few as cover it, none apart, each pixel of one alone") {
  for (const int side : {16, 17, 64}) {
    for (const int overlap : {0, 1, side / 8, side / 2}) {
      for (int length = 1; length < 5 * side; ++length) {
        const std::vector<TileSpan> spans = TilesAlong(length, {side, overlap});
        REQUIRE(spans.front().begin == 0);
        REQUIRE(spans.back().begin + spans.back().length == length);
        REQUIRE(spans.front().own_begin == 0);
        REQUIRE(spans.back().own_end == length);
        for (size_t i = 0; i < spans.size(); ++i) {
          const TileSpan& span = spans[i];
          REQUIRE(span.length == std::min(length, side));
          REQUIRE(span.own_begin >= span.begin);
          REQUIRE(span.own_end <= span.begin + span.length);
          REQUIRE(span.own_begin < span.own_end);
          if (i == 0) continue;
          REQUIRE(span.own_begin == spans[i - 1].own_end);
          REQUIRE(spans[i - 1].begin + side - span.begin >= overlap);
          // The centers of both are as far from the seam, but for rounding.
          REQUIRE(std::abs(2 * span.own_begin - span.begin - side - spans[i - 1].begin) <= 1);
        }
        const int one_less = static_cast<int>(spans.size()) - 1;
        if (one_less > 0) REQUIRE(one_less * side - (one_less - 1) * overlap < length);
      }
    }
  }
}

TEST_CASE("tiles have the pixels, classes and boxes of their part of the file") {
  const auto scenes = FourScenes();
  const auto tiled = NewTiledSource(scenes, TilesOf(kTileSide, 4));
  // 40 x 61: 3 x 5; 16 x 100: 1 x 8; one that cannot be read; 33 x 16: 3 x 1.
  REQUIRE(tiled->size() == 15 + 8 + 1 + 3);
  const Cuts cuts = CutsOf(tiled, {});
  CHECK(cuts.bad == std::vector<std::string>{"scene 2"});
  REQUIRE(cuts.examples.size() == 26);
  for (const auto& [index, cut] : cuts.examples) {
    const Tile& tile = *tiled->TileOf(index);
    const Image &image = scenes->image(tile.image), &classes = scenes->classes(tile.image);
    bool pixels = true, of_class = true;
    for (int y = 0; y < kTileSide; ++y) {
      for (int x = 0; x < kTileSide; ++x) {
        const auto at = static_cast<size_t>(y * kTileSide + x);
        const int column = tile.box.x + x, row = tile.box.y + y;
        for (size_t c = 0; c < 3; ++c)
          pixels = pixels && cut.pixels[c * kTileSide * kTileSide + at] * 255 ==
                                 doctest::Approx(image.row(row)[3 * column + int(c)]);
        of_class = of_class && cut.classes[at] == classes.row(row)[column];
      }
    }
    CHECK(pixels);
    CHECK(of_class);
    std::vector<float> boxes =
        BoxesWithin(scenes->boxes(tile.image), tile.box, {tile.box.x, tile.box.y});
    boxes.resize(36, -1);
    for (size_t i = 0; i < boxes.size(); ++i) REQUIRE(cut.boxes[i] == doctest::Approx(boxes[i]));
  }
  // Neither threads nor the cache change them.
  for (const Kwargs& kwargs : {Kwargs{{"workers", "1"}}, Kwargs{{"workers", "4"}},
                               Kwargs{{"workers", "3"}, {"cache", "ram"}}})
    CHECK(CutsOf(tiled, kwargs).examples == cuts.examples);
}

TEST_CASE("transforms begin with the tile, also one that moves pixels at once") {
  const auto scenes = FourScenes();
  const auto tiled = NewTiledSource(scenes, TilesOf(kTileSide, 4));
  Runtime runtime = MakeRuntime();
  PipelineParam param = Param({{"batch_size", "1"}, {"mode", "evaluation"}});
  param.origins = true;
  const auto iter = NewPipeline(runtime, tiled, {{"rotate", {{"", "0, 0"}}}}, param);
  DataBatch batch;
  REQUIRE(iter->Next(&batch));
  // The first tile begins where its file does, and still ends with itself.
  CHECK(tiled->TileOf(0)->box == Box{0, 0, kTileSide, kTileSide});
  CHECK(AreaOf(batch.origins[0].seen()) == kTileSide * kTileSide);
}

TEST_CASE("tiles that make no sense, and data that has none") {
  CHECK(TilesOf(640, std::nullopt).overlap == 80);
  CHECK(MessageOf([] { TilesOf(15, 0); }) == "tiles of 15 pixels: expected 16 .. 65535");
  CHECK(MessageOf([] { TilesOf(64, 33); }) ==
        "tiles of 64 pixels cannot overlap by 33: expected 0 .. 32, half of them");
  CHECK(MessageOf([] { NewTiledSource(std::make_shared<Counting>(3), TilesOf(64, 0)); }) ==
        "tiles are parts of images: the data must be one image");
  const TempDir dir;
  WriteImages(dir, 4);
  CHECK(Says(MessageOf([&] { NewTiledSource(Folder(dir), TilesOf(64, 0)); }),
             "belongs to the image as a whole"));
}

TEST_CASE("an image is decoded once for all threads that want its tiles") {
  TiledImages images;
  std::atomic<int> decoded = 0;
  const int field = 0;
  const auto get = [&](int64_t example) {
    return images.Get({example, &field}, [&]() -> TiledImages::Decoded {
      ++decoded;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (example == 7) return Refusal{"damaged"};
      auto image = std::make_shared<Image>();
      image->Resize(1, static_cast<int>(example), 1);
      return std::shared_ptr<const Image>(image);
    });
  };
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; ++t) threads.emplace_back([&] { right += (*get(3))->width == 3; });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
  CHECK(decoded == 1);
  CHECK(get(7).error().reason == "damaged");
  CHECK(get(7).error().reason == "damaged");
  CHECK(decoded == 2);
  CHECK(get(4));  // the third: the first is forgotten
  CHECK(get(3));
  CHECK(decoded == 4);
  CHECK_THROWS_AS(images.Get({9, &field}, []() -> TiledImages::Decoded { throw std::bad_alloc(); }),
                  std::bad_alloc);
}

}  // namespace mxtrain::test
