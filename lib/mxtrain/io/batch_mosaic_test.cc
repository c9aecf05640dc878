// SPDX-License-Identifier: Apache-2.0
// Batches with mosaic against the batches without: each pixel comes from one of four examples, with
// its class, and boxes are cut where the pixels are.
#include <doctest/doctest.h>

#include <array>
#include <set>

#include "mxtrain/io/pipeline.h"
#include "tests/support/error_message.h"
#include "tests/support/scenes.h"

namespace mxtrain::test {
namespace {

constexpr int kHeight = 24, kWidth = 34, kRows = 10, kPlane = kHeight * kWidth, kFour = 4;

std::shared_ptr<const Scenes> ManyScenes() {
  std::vector<std::pair<int, int>> sizes;
  for (int i = 0; i < 40; ++i) sizes.emplace_back(20 + i % 7, 30 + i % 11);
  return std::make_shared<Scenes>(sizes);
}

struct Batch {
  std::vector<float> data, classes, boxes;
  bool operator==(const Batch&) const = default;
};

std::vector<Batch> BatchesOf(Kwargs kwargs, int64_t epoch) {
  Kwargs all{{"batch_size", std::to_string(kRows)}, {"seed", "3"}, {"shuffle", "True"}};
  all.insert(all.end(), kwargs.begin(), kwargs.end());
  Runtime runtime = MakeRuntime();
  const auto iter = NewPipeline(
      runtime, ManyScenes(),
      {{"resize", {{"", params::Print(TShape{kHeight, kWidth})}}}, {"flip", {}}}, Param(all));
  iter->Reset(epoch, 0);
  std::vector<Batch> batches;
  DataBatch batch;
  while (iter->Next(&batch))
    batches.push_back(
        {batch.data[0].ToVector(), batch.label[0].ToVector(), batch.label[1].ToVector()});
  return batches;
}

std::vector<float> NumbersOf(const std::vector<float>& of, int64_t row, int64_t width) {
  return {of.begin() + row * width, of.begin() + (row + 1) * width};
}

// The rows of boxes of an example, without what fills them up.
std::vector<float> BoxesOf(const std::vector<float>& of, int64_t row, int64_t most) {
  std::vector<float> boxes = NumbersOf(of, row, most * kBoxColumns);
  size_t count = 0;
  while (count < boxes.size() && boxes[count] >= 0) count += kBoxColumns;
  for (size_t k = count; k < boxes.size(); ++k) REQUIRE(boxes[k] == -1);
  boxes.resize(count);
  return boxes;
}

std::multiset<std::vector<float>> AsSet(const std::vector<float>& boxes) {
  std::multiset<std::vector<float>> set;
  for (size_t i = 0; i < boxes.size(); i += kBoxColumns) {
    std::vector<float> box(boxes.begin() + static_cast<int64_t>(i),
                           boxes.begin() + static_cast<int64_t>(i) + kBoxColumns);
    for (float& number : box) number = std::round(number * 64) / 64;
    set.insert(box);
  }
  return set;
}

// Whether row `i` of four shows at (x, y) what row (i + q) % 4 of the plain batch shows there.
bool IsFrom(const Batch& mixed, const Batch& plain, int64_t first, int64_t i, int64_t q, int64_t x,
            int64_t y) {
  const int64_t row = first + i, other = first + (i + q) % kFour, at = y * kWidth + x;
  for (int64_t c = 0; c < 3; ++c) {
    if (mixed.data[static_cast<size_t>((row * 3 + c) * kPlane + at)] !=
        plain.data[static_cast<size_t>((other * 3 + c) * kPlane + at)])
      return false;
  }
  return mixed.classes[static_cast<size_t>(row * kPlane + at)] ==
         plain.classes[static_cast<size_t>(other * kPlane + at)];
}

bool AllFrom(const Batch& mixed, const Batch& plain, int64_t first, int64_t q, const Box& part) {
  for (int64_t i = 0; i < kFour; ++i) {
    for (int64_t y = part.y; y < part.y + part.height; ++y) {
      for (int64_t x = part.x; x < part.x + part.width; ++x) {
        if (!IsFrom(mixed, plain, first, i, q, x, y)) return false;
      }
    }
  }
  return true;
}

// The quarters of a group of four; nothing if it is not mixed.
std::optional<std::array<Box, 4>> QuartersOf(const Batch& mixed, const Batch& plain,
                                             int64_t first) {
  if (AllFrom(mixed, plain, first, 0, {0, 0, kHeight, kWidth})) return std::nullopt;
  for (int y = kHeight / 4; y <= kHeight / 4 + kHeight / 2; ++y) {
    for (int x = kWidth / 4; x <= kWidth / 4 + kWidth / 2; ++x) {
      const std::array<Box, 4> quarters = {Box{0, 0, y, x}, Box{0, x, y, kWidth - x},
                                           Box{y, 0, kHeight - y, x},
                                           Box{y, x, kHeight - y, kWidth - x}};
      bool all = true;
      for (size_t q = 0; q < 4 && all; ++q)
        all = AllFrom(mixed, plain, first, static_cast<int64_t>(q), quarters[q]);
      if (all) return quarters;
    }
  }
  FAIL("no quarters");
  return std::nullopt;
}

}  // namespace

TEST_CASE("mosaic: quarters of four examples, with their classes and boxes") {
  int mixed_groups = 0, groups = 0;
  std::set<std::pair<int, int>> centers;
  for (const double probability : {1.0, 0.5}) {
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const auto plain = BatchesOf({}, epoch),
                 mixed = BatchesOf({{"mosaic", params::Print(probability)}}, epoch);
      REQUIRE(plain.size() == 4);
      REQUIRE(mixed.size() == 4);
      for (size_t b = 0; b < plain.size(); ++b) {
        REQUIRE(mixed[b].boxes.size() == kFour * plain[b].boxes.size());
        for (int64_t first = 0; first < kRows; first += kFour) {
          const bool whole_group = first + kFour <= kRows;
          const auto quarters = whole_group ? QuartersOf(mixed[b], plain[b], first) : std::nullopt;
          groups += whole_group && probability < 1;
          mixed_groups += quarters && probability < 1;
          CHECK((quarters || !whole_group || probability < 1));
          if (quarters) centers.emplace((*quarters)[3].x, (*quarters)[3].y);
          for (int64_t i = 0; i < kFour && first + i < kRows; ++i) {
            std::vector<float> expected;
            for (int64_t q = 0; q < kFour; ++q) {
              const Box part = quarters ? (*quarters)[static_cast<size_t>(q)]
                                        : Box{0, 0, q == 0 ? kHeight : 0, q == 0 ? kWidth : 0};
              const int64_t row = whole_group ? first + (i + q) % kFour : first + i;
              const auto cut =
                  BoxesWithin(BoxesOf(plain[b].boxes, row, Scenes::kMost), part, {0, 0});
              expected.insert(expected.end(), cut.begin(), cut.end());
            }
            CHECK(AsSet(BoxesOf(mixed[b].boxes, first + i, kFour * Scenes::kMost)) ==
                  AsSet(expected));
          }
        }
      }
    }
  }
  CHECK(groups == 32);
  CHECK(mixed_groups > 5);
  CHECK(mixed_groups < 27);
  CHECK(centers.size() > 20);
}

TEST_CASE("mosaic depends on nothing but seed, epoch and batch, and ends with its epochs") {
  const Kwargs mosaic{{"mosaic", "0.7"}, {"mosaic_epochs", "2"}};
  Kwargs threads = mosaic;
  threads.emplace_back("workers", "4");
  CHECK(BatchesOf(mosaic, 1) == BatchesOf(threads, 1));
  CHECK(BatchesOf(mosaic, 1)[0].data != BatchesOf({}, 1)[0].data);
  const auto after = BatchesOf(mosaic, 2), plain = BatchesOf({}, 2);
  CHECK(after[0].data == plain[0].data);
}

TEST_CASE("mosaic is refused where labels have no places") {
  Runtime runtime = MakeRuntime();
  const TempDir dir;
  WriteImages(dir, 4);
  const PipelineParam param = Param({{"batch_size", "4"}, {"mosaic", "1"}});
  CHECK(Says(MessageOf([&] { NewPipeline(runtime, Folder(dir), kPlainTransforms, param); }),
             "mosaic is for boxes, masks and images as labels, but the label"));
  CHECK(Says(MessageOf([&] {
               NewPipeline(runtime, ManyScenes(), kPlainTransforms,
                           Param({{"batch_size", "4"}, {"mosaic", "1"}, {"mode", "evaluation"}}));
             }),
             "mixup, cutmix and mosaic are for training"));
}

}  // namespace mxtrain::test
