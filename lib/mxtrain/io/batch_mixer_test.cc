// SPDX-License-Identifier: Apache-2.0
// Batches with mixup and cutmix against the batches without: every number of a mixed pair must
// follow from the two plain rows and one share.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "mxtrain/base/philox.h"
#include "mxtrain/io/internal/epoch_order.h"
#include "mxtrain/io/pipeline.h"

using namespace mxtrain;
using namespace mxtrain::io;

namespace {

constexpr int kSide = 8, kChannels = 3, kClasses = 3, kPixels = kSide * kSide, kExamples = 50,
              kBatch = 8;
constexpr float kSmoothing = 0.1f;

// Decoded noise images, in three classes.
class NoiseSource final : public Source {
 public:
  NoiseSource() {
    for (size_t i = 0; i < size_t{kExamples} * kPixels * kChannels; ++i)
      pixels_.push_back(static_cast<uint8_t>(PhiloxAt(1, 2, 3, i) >> 24));
    for (int i = 0; i < kExamples; ++i) labels_.push_back(static_cast<float>(i % kClasses));
  }
  int64_t size() const override { return kExamples; }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(1);
    constexpr size_t kBytes = size_t{kPixels} * kChannels;
    sample->data[0].pixels = {pixels_.data() + static_cast<size_t>(index) * kBytes, kBytes};
    sample->labels[0].values = {&labels_[static_cast<size_t>(index)], 1};
  }
  std::string Name(int64_t index) const override { return format("noise {}", index); }
  std::optional<int> ClassOf(int64_t index) const override {
    return static_cast<int>(index % kClasses);
  }
  const std::vector<std::string>& class_names() const override { return names_; }

 private:
  std::vector<uint8_t> pixels_;
  std::vector<float> labels_;
  std::vector<std::string> names_ = {"a", "b", "c"};
  std::vector<FieldSpec> data_ = {{"data", FieldKind::kImage, TShape{kChannels, kSide, kSide}}},
                         label_ = {{"label", FieldKind::kValues, TShape()}};
};

struct MixedRows {
  std::vector<float> data, label;
  std::vector<int64_t> index;
  const float* image(int64_t i) const { return data.data() + i * kPixels * kChannels; }
  const float* classes(int64_t i) const { return label.data() + i * kClasses; }
  bool operator==(const MixedRows&) const = default;
};

std::vector<MixedRows> Epoch(const Kwargs& more, int64_t epoch, int64_t first_batch = 0,
                             bool pixels = false) {
  Runtime runtime(RuntimeOptions(), nullptr);
  Kwargs kwargs = {{"batch_size", std::to_string(kBatch)},
                   {"shuffle", "True"},
                   {"seed", "4"},
                   {"soft_labels", "3"},
                   {"label_smoothing", "0.1"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  PipelineParam param;
  param.Init(kwargs, "data");
  param.pixels = pixels;
  const auto iter = NewPipeline(runtime, std::make_shared<NoiseSource>(), {}, param);
  CHECK(iter->provide_label()[0].shape == TShape{kBatch, kClasses});
  iter->Reset(epoch, first_batch);
  std::vector<MixedRows> batches;
  DataBatch batch;
  const DataDesc data = iter->provide_data()[0];
  CHECK(data.pixels.has_value() == (pixels && param.mixup == 0 && param.cutmix == 0));
  while (iter->Next(&batch))
    batches.push_back({InputValues(data, batch.data[0]), batch.label[0].ToVector(), batch.index});
  return batches;
}

// The share of the own label in a mixed one, NaN if both are of one class.
double ShareOfLabel(const float* mixed, const float* own, const float* other) {
  for (int k = 0; k < kClasses; ++k) {
    if (own[k] != other[k]) return (mixed[k] - other[k]) / static_cast<double>(own[k] - other[k]);
  }
  return std::nan("");
}

// Every number is share * own + (1 - share) * other; returns the share.
double CheckMixup(const float* mixed, const float* own, const float* other) {
  double top = 0, bottom = 0;
  for (int k = 0; k < kPixels * kChannels; ++k) {
    top += static_cast<double>(mixed[k] - other[k]) * (own[k] - other[k]);
    bottom += static_cast<double>(own[k] - other[k]) * (own[k] - other[k]);
  }
  const double share = top / bottom;
  for (int k = 0; k < kPixels * kChannels; ++k)
    CHECK(std::abs(mixed[k] - (share * own[k] + (1 - share) * other[k])) < 1e-5);
  return share;
}

// Outside one box every number is the own, inside the other's; returns the fraction outside.
double CheckCutmix(const float* mixed, const float* own, const float* other) {
  int top = kSide, left = kSide, bottom = -1, right = -1;
  for (int k = 0; k < kPixels; ++k) {
    bool differs = false;
    for (int c = 0; c < kChannels; ++c)
      differs = differs || mixed[c * kPixels + k] != own[c * kPixels + k];
    if (!differs) continue;
    top = std::min(top, k / kSide), bottom = std::max(bottom, k / kSide);
    left = std::min(left, k % kSide), right = std::max(right, k % kSide);
  }
  for (int c = 0; c < kChannels; ++c) {
    for (int k = 0; k < kPixels; ++k) {
      const bool inside =
          k / kSide >= top && k / kSide <= bottom && k % kSide >= left && k % kSide <= right;
      CHECK(mixed[c * kPixels + k] == (inside ? other : own)[c * kPixels + k]);
    }
  }
  return bottom < 0 ? 1
                    : 1 - static_cast<double>((bottom - top + 1) * (right - left + 1)) / kPixels;
}

bool IsCut(const float* mixed, const float* own, const float* other) {
  for (int k = 0; k < kPixels * kChannels; ++k) {
    if (mixed[k] != own[k] && mixed[k] != other[k]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("labels become distributions, smoothed") {
  for (const MixedRows& rows : Epoch({}, 0)) {
    for (int64_t i = 0; i < kBatch; ++i) {
      for (int k = 0; k < kClasses; ++k) {
        CHECK(rows.classes(i)[k] ==
              doctest::Approx(k == rows.index[static_cast<size_t>(i)] % kClasses ? 1 - kSmoothing
                                                                                 : kSmoothing / 2));
      }
    }
  }
}

TEST_CASE("pairs are mixed by one share, images and labels alike; mixup, cutmix and either") {
  for (const Kwargs& kwargs : {Kwargs{{"mixup", "0.4"}}, Kwargs{{"cutmix", "1"}},
                               Kwargs{{"mixup", "1"}, {"cutmix", "1"}}}) {
    const bool mixup = kwargs[0].first == "mixup", cutmix = kwargs.back().first == "cutmix";
    int cuts = 0, blends = 0;
    for (int64_t epoch = 0; epoch < 10; ++epoch) {
      const std::vector<MixedRows> plain = Epoch({}, epoch), mixed = Epoch(kwargs, epoch);
      REQUIRE(plain.size() == mixed.size());
      for (size_t b = 0; b < plain.size(); ++b) {
        CHECK(plain[b].index == mixed[b].index);
        for (int64_t i = 0; i < kBatch; ++i) {
          const int64_t j = kBatch - 1 - i;
          const bool cut = IsCut(mixed[b].image(i), plain[b].image(i), plain[b].image(j));
          const double share = (cut ? CheckCutmix : CheckMixup)(
              mixed[b].image(i), plain[b].image(i), plain[b].image(j));
          const double of_label =
              ShareOfLabel(mixed[b].classes(i), plain[b].classes(i), plain[b].classes(j));
          if (!std::isnan(of_label)) CHECK(std::abs(share - of_label) < 1e-5);
          cut ? ++cuts : ++blends;
        }
      }
    }
    if (!mixup) CHECK(blends == 0);
    if (!cutmix) CHECK(cuts < blends / 4);  // a share of exactly 0 or 1 looks like cutmix
    if (mixup && cutmix) CHECK(std::abs(cuts - blends) < (cuts + blends) / 3);
  }
}

// Var Beta(a, a) = 1 / (4 (2 a + 1)); mean 1/2.
TEST_CASE("shares have the mean and the variance of Beta(alpha, alpha)") {
  for (const double alpha : {0.2, 1.0, 3.0}) {
    double sum = 0, squares = 0, n = 0;
    for (int64_t epoch = 0; epoch < 60; ++epoch) {
      const std::vector<MixedRows> plain = Epoch({}, epoch),
                                   mixed = Epoch({{"mixup", format("{}", alpha)}}, epoch);
      for (size_t b = 0; b < plain.size(); ++b) {
        for (int64_t i = 0; i < kBatch / 2; ++i) {
          const double share = ShareOfLabel(mixed[b].classes(i), plain[b].classes(i),
                                            plain[b].classes(kBatch - 1 - i));
          if (std::isnan(share)) continue;
          sum += share;
          squares += (share - 0.5) * (share - 0.5);
          n += 1;
        }
      }
    }
    CAPTURE(alpha);
    CHECK(std::abs(sum / n - 0.5) < 0.04);
    CHECK(squares / n == doctest::Approx(1 / (4 * (2 * alpha + 1))).epsilon(0.12));
  }
}

TEST_CASE("mixing depends on seed, epoch and batch alone, and ends as configured") {
  const Kwargs kwargs = {
      {"mixup", "0.4"}, {"cutmix", "1"}, {"mixup_epochs", "3"}, {"cutmix_epochs", "2"}};
  const auto with = [&](const Kwargs& more) {
    Kwargs all = kwargs;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<MixedRows> one = Epoch(with({{"workers", "1"}}), 1);
  CHECK(Epoch(with({{"workers", "3"}}), 1) == one);
  CHECK(Epoch(kwargs, 1, 2) == std::vector<MixedRows>(one.begin() + 2, one.end()));
  CHECK(Epoch(kwargs, 0) != one);
  CHECK(Epoch(kwargs, 2) == Epoch({{"mixup", "0.4"}}, 2));
  CHECK(Epoch(kwargs, 3) == Epoch({}, 3));
}

TEST_CASE("parts draw shares of their own") {
  const auto shares_of = [](const std::string& part) {
    const Kwargs parts = {{"part_index", part}, {"num_parts", "2"}};
    Kwargs mixes = parts;
    mixes.emplace_back("mixup", "1");
    const std::vector<MixedRows> plain = Epoch(parts, 0), mixed = Epoch(mixes, 0);
    REQUIRE(mixed.size() == kExamples / (2 * kBatch));
    std::vector<double> shares;
    for (size_t b = 0; b < mixed.size(); ++b)
      shares.push_back(
          CheckMixup(mixed[b].image(0), plain[b].image(0), plain[b].image(kBatch - 1)));
    return shares;
  };
  const std::vector<double> left = shares_of("0"), right = shares_of("1");
  for (size_t b = 0; b < left.size(); ++b) CHECK(std::abs(left[b] - right[b]) > 1e-3);
}

TEST_CASE("batches that are mixed are float32 where others are pixels") {
  for (const Kwargs& kwargs :
       {Kwargs{}, Kwargs{{"mixup", "0.4"}}, Kwargs{{"cutmix", "1"}, {"cutmix_epochs", "1"}}}) {
    for (const int64_t epoch : {0, 1}) CHECK(Epoch(kwargs, epoch, 0, true) == Epoch(kwargs, epoch));
  }
}

TEST_CASE("what cannot be mixed is rejected") {
  Runtime runtime(RuntimeOptions(), nullptr);
  const auto why_not = [&](const Kwargs& kwargs) -> std::string {
    PipelineParam param;
    try {
      Kwargs all = kwargs;
      all.emplace_back("batch_size", "4");
      param.Init(all, "data");
      NewPipeline(runtime, std::make_shared<NoiseSource>(), {}, param);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(why_not({{"mixup", "1"}}) ==
        "mixup, cutmix and label_smoothing work on labels that are distributions: set soft_labels");
  CHECK(why_not({{"cutmix", "1"}, {"soft_labels", "3"}, {"mode", "evaluation"}}) ==
        "mixup, cutmix and mosaic are for training");
  CHECK(why_not({{"balanced", "True"}}) == "balanced: set shuffle too");
}

TEST_CASE(
    "a balanced epoch has every class equally often, all examples of a class before one repeats") {
  std::vector<int> classes;
  for (int i = 0; i < 60; ++i) classes.push_back(i < 40 ? 0 : i < 55 ? 1 : 3);  // 40, 15, none, 5
  std::map<int64_t, int> of_large;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    const std::vector<int64_t> order = BalancedOrder(classes, {7, true}, epoch);
    REQUIRE(order.size() == classes.size());
    std::map<int64_t, int> seen;
    std::map<int, int> of_class;
    for (int64_t example : order) {
      ++seen[example];
      ++of_class[classes[static_cast<size_t>(example)]];
      if (classes[static_cast<size_t>(example)] == 0) ++of_large[example];
    }
    CHECK(of_class == std::map<int, int>{{0, 20}, {1, 20}, {3, 20}});
    for (const auto& [example, times] : seen) {
      const int c = classes[static_cast<size_t>(example)];
      CHECK(times >= (c == 0 ? 0 : c == 1 ? 1 : 4));
      CHECK(times <= (c == 0 ? 1 : c == 1 ? 2 : 4));
    }
    CHECK(order == BalancedOrder(classes, {7, true}, epoch));
    CHECK(order != BalancedOrder(classes, {7, true}, epoch + 1));
  }
  CHECK(of_large.size() > 35);  // all of the large class over the epochs
}
