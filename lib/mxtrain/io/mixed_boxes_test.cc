// SPDX-License-Identifier: Apache-2.0
// Batches with mixup of boxes against the batches without.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mxtrain/io/pipeline.h"
#include "tests/support/error_message.h"
#include "tests/support/scenes.h"

namespace mxtrain::test {
namespace {

// Scenes of which only the boxes are labels.
class BoxedScenes final : public Source {
 public:
  BoxedScenes() : scenes_({{20, 30}, {24, 34}, {21, 31}, {22, 36}, {23, 33}, {25, 35}}) {}
  int64_t size() const override { return scenes_.size(); }
  const std::vector<FieldSpec>& data_fields() const override { return scenes_.data_fields(); }
  const std::vector<FieldSpec>& label_fields() const override { return labels_; }
  void Read(int64_t index, Sample* sample) const override {
    scenes_.Read(index, sample);
    sample->labels[0].values = sample->labels[1].values;
    sample->labels.resize(1);
  }
  std::string Name(int64_t index) const override { return scenes_.Name(index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return scenes_.class_names(); }

 private:
  const Scenes scenes_;
  const std::vector<FieldSpec> labels_ = {
      {"boxes", FieldKind::kBoxes, TShape{Scenes::kMost, kBoxColumns}}};
};

struct BoxedBatch {
  std::vector<float> data, boxes;
};
std::vector<BoxedBatch> BoxedBatches(const Kwargs& kwargs, int64_t epoch, int rows = 3) {
  Kwargs all{{"batch_size", std::to_string(rows)}, {"seed", "3"}, {"shuffle", "True"}};
  all.insert(all.end(), kwargs.begin(), kwargs.end());
  Runtime runtime = MakeRuntime();
  const auto iter =
      NewPipeline(runtime, std::make_shared<BoxedScenes>(),
                  {{"resize", {{"", params::Print(TShape{24, 32})}}}, {"flip", {}}}, Param(all));
  iter->Reset(epoch, 0);
  std::vector<BoxedBatch> batches;
  DataBatch batch;
  while (iter->Next(&batch))
    batches.push_back({batch.data[0].ToVector(), batch.label[0].ToVector()});
  return batches;
}

// The objects of a row of `most`, without what fills it up.
std::vector<float> ObjectsOfRow(const std::vector<float>& boxes, size_t row, size_t most) {
  const size_t width = most * kBoxColumns;
  std::vector<float> objects(boxes.begin() + static_cast<std::ptrdiff_t>(row * width),
                             boxes.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
  const auto end = std::ranges::find(objects, -1.0f);
  for (auto at = end; at != objects.end(); ++at) REQUIRE(*at == -1);
  objects.erase(end, objects.end());
  return objects;
}

}  // namespace

TEST_CASE("mixup of boxes: an image with the next, and the objects of both") {
  constexpr size_t kRows = 3, kNumbers = size_t{3} * 24 * 32;
  std::set<int> shares;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    const auto plain = BoxedBatches({}, epoch), mixed = BoxedBatches({{"mixup", "1.5"}}, epoch);
    REQUIRE(plain.size() == 2);
    REQUIRE(mixed.size() == 2);
    for (size_t b = 0; b < 2; ++b) {
      REQUIRE(mixed[b].boxes.size() == 2 * plain[b].boxes.size());
      for (size_t row = 0; row < kRows; ++row) {
        const size_t next = (row + 1) % kRows;
        std::vector<float> both = ObjectsOfRow(plain[b].boxes, row, Scenes::kMost);
        const std::vector<float> others = ObjectsOfRow(plain[b].boxes, next, Scenes::kMost);
        both.insert(both.end(), others.begin(), others.end());
        CHECK(ObjectsOfRow(mixed[b].boxes, row, size_t{2} * Scenes::kMost) == both);
        // One share explains all pixels: that of least squares.
        double above = 0, below = 0;
        const auto at = [&](const BoxedBatch& batch, size_t r, size_t k) {
          return double{batch.data[r * kNumbers + k]};
        };
        for (size_t k = 0; k < kNumbers; ++k) {
          const double other = at(plain[b], next, k), gap = at(plain[b], row, k) - other;
          above += (at(mixed[b], row, k) - other) * gap;
          below += gap * gap;
        }
        const double share = above / below;
        CHECK(share >= 0);
        CHECK(share <= 1);
        shares.insert(static_cast<int>(share * 1000));
        double worst = 0;
        for (size_t k = 0; k < kNumbers; ++k) {
          const double expected =
              share * at(plain[b], row, k) + (1 - share) * at(plain[b], next, k);
          worst = std::max(worst, std::abs(at(mixed[b], row, k) - expected));
        }
        CHECK(worst < 1e-5);
      }
    }
  }
  CHECK(shares.size() > 20);  // of 24
}

TEST_CASE("mixup of boxes ends with its epochs, and goes with mosaic") {
  const Kwargs mixup{{"mixup", "1.5"}, {"mixup_epochs", "2"}};
  CHECK(BoxedBatches(mixup, 1)[0].data != BoxedBatches({}, 1)[0].data);
  CHECK(BoxedBatches(mixup, 2)[0].data == BoxedBatches({}, 2)[0].data);
  Kwargs threads = mixup, both = mixup;
  threads.emplace_back("workers", "3");
  both.emplace_back("mosaic", "1");
  CHECK(BoxedBatches(mixup, 0)[1].data == BoxedBatches(threads, 0)[1].data);
  constexpr int kAll = 6;
  const BoxedBatch joined = BoxedBatches(both, 0, kAll)[0];
  CHECK(joined.boxes.size() == size_t{kAll} * 4 * 2 * Scenes::kMost * kBoxColumns);
  CHECK(joined.data != BoxedBatches(mixup, 0, kAll)[0].data);
}

TEST_CASE("mixing of boxes with cutmix, or with other labels, is refused") {
  Runtime runtime = MakeRuntime();
  const auto why_not = [&](const std::shared_ptr<const Source>& source, const Kwargs& kwargs) {
    return MessageOf([&] { NewPipeline(runtime, source, kPlainTransforms, Param(kwargs)); });
  };
  CHECK(Says(why_not(std::make_shared<BoxedScenes>(), {{"batch_size", "2"}, {"cutmix", "1"}}),
             "cutmix mixes the classes of two examples, but the label 'boxes' is boxes in an "
             "image: turn it off"));
  const std::vector<std::pair<int, int>> sizes = {{20, 30}, {21, 31}};
  CHECK(Says(why_not(std::make_shared<Scenes>(sizes), {{"batch_size", "2"}, {"mixup", "1"}}),
             "mixup and cutmix mix the classes of two examples, but the label 'mask' is"));
}

}  // namespace mxtrain::test
