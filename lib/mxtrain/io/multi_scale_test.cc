// SPDX-License-Identifier: Apache-2.0
// Batches of several sizes against those of pipelines with one size each.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "mxtrain/io/augmenter.h"
#include "mxtrain/io/multi_scale.h"
#include "mxtrain/io/pipeline.h"
#include "tests/support/error_message.h"
#include "tests/support/scenes.h"

namespace mxtrain::test {
namespace {

using Sizes = std::vector<std::pair<int, int>>;
using Chain = std::vector<TransformSpec>;

constexpr uint64_t kScaleSeed = 5;
const ImageSize kUsual{16, 24};
const Chain kUsualChain = {{"random_crop", {{"size", "(12, 18)"}, {"pad", "2"}}},
                           {"resize", {{"", "(16, 24)"}}},
                           {"flip", {}}};

Sizes SizesOf(ImageSize usual, double least, double most, int64_t multiple) {
  Sizes sizes;
  for (const ImageSize& size : SizesBeside(usual, least, most, multiple))
    sizes.emplace_back(size.height, size.width);
  return sizes;
}

// Data, mask and boxes of a batch, with their shapes.
std::vector<std::pair<TShape, std::vector<float>>> AllOf(const DataBatch& batch) {
  std::vector<std::pair<TShape, std::vector<float>>> all;
  for (const auto* arrays : {&batch.data, &batch.label}) {
    for (const NDArray& array : *arrays) all.emplace_back(array.shape(), array.ToVector());
  }
  return all;
}

std::shared_ptr<const Scenes> SomeScenes() {
  Sizes sizes;
  for (int i = 0; i < 40; ++i) sizes.emplace_back(20 + i % 7, 30 + i % 11);
  return std::make_shared<const Scenes>(sizes);
}

PipelineParam ScaledParam(const Kwargs& more = {}) {
  Kwargs kwargs{{"batch_size", "4"}, {"seed", std::to_string(kScaleSeed)}, {"shuffle", "True"}};
  kwargs.insert(kwargs.end(), more.begin(), more.end());
  return Param(kwargs);
}

MultiScale ThreeSizes() {
  MultiScale scales{{}, 2};
  for (const ImageSize& size : SizesBeside(kUsual, 0.5, 1.5, 8))
    scales.chains.push_back(ScaledTransforms(kUsualChain, kUsual, size));
  scales.usual = 1;
  return scales;
}

}  // namespace

TEST_CASE("sizes beside the usual one are multiples within the range") {
  CHECK(SizesOf({416, 416}, 0.75, 1.25, 32) ==
        Sizes{{320, 320}, {352, 352}, {384, 384}, {416, 416}, {448, 448}, {480, 480}, {512, 512}});
  CHECK(SizesOf({288, 384}, 0.8, 1.2, 32) == Sizes{{256, 352}, {288, 384}, {320, 416}});
  CHECK(SizesOf({384, 288}, 0.8, 1.2, 32) == Sizes{{352, 256}, {384, 288}, {416, 320}});
  CHECK(SizesOf({100, 100}, 0.9, 1.1, 32) == Sizes{{96, 96}, {100, 100}});   // the usual one stays
  CHECK(SizesOf({100, 150}, 0.9, 1.1, 32) == Sizes{{100, 150}, {96, 160}});  // by area
  CHECK(SizesOf({64, 64}, 0.9, 1.1, 32) == Sizes{{64, 64}});
  CHECK(SizesOf({64, 64}, 2, 3, 64) == Sizes{{64, 64}, {128, 128}, {192, 192}});
}

TEST_CASE("all sizes that a chain names are scaled") {
  const Chain chain = {{"resize", {{"", "144"}}},
                       {"random_crop", {{"", "128"}, {"pad", "4"}}},
                       {"letterbox", {{"size", "(64, 64)"}, {"fill", "0"}}},
                       {"normalize", {{"mean", "0.5"}, {"std", "0.25"}}}};
  const Chain scaled = ScaledTransforms(chain, {64, 64}, {96, 96});
  const auto text = [&](size_t at, const std::string& key) {
    for (const auto& [name, value] : scaled[at].kwargs) {
      if (name == key) return value;
    }
    return std::string("none");
  };
  CHECK(text(0, "size") == params::Print(TShape{216}));
  CHECK(text(1, "size") == params::Print(TShape{192}));
  CHECK(text(1, "pad") == "4");
  CHECK(text(2, "size") == params::Print(TShape{96, 96}));
  CHECK(text(3, "std") == "0.25");
  CHECK(MessageOf([] {
          ScaledTransforms({{"resize", {{"", "64"}}}}, {64, 64}, {96, 96});
        }) ==
        "for 96x96 instead of 64x64, the transforms make images whose size differs from image to "
        "image");
  CHECK(MessageOf([] {
          ScaledTransforms({{"resize", {{"", "(32, 32)"}}}}, {64, 64}, {96, 96});
        }) == "for 96x96 instead of 64x64, the transforms make images of 48x48");
}

TEST_CASE("a batch is that of a pipeline of its size") {
  Runtime runtime = MakeRuntime();
  const MultiScale scales = ThreeSizes();
  REQUIRE(scales.chains.size() == 3);
  const PipelineParam param = ScaledParam();
  std::map<std::vector<int64_t>, std::unique_ptr<DataIter>> of_one_size;
  for (const Chain& chain : scales.chains) {
    auto iter = NewPipeline(runtime, SomeScenes(), chain, param);
    const TShape shape = iter->provide_data()[0].shape;
    of_one_size[{shape.begin(), shape.end()}] = std::move(iter);
  }
  REQUIRE(of_one_size.size() == 3);
  const auto iter = NewMultiScalePipeline(runtime, SomeScenes(), scales, param);
  REQUIRE(iter->sizes().size() == 3);
  CHECK(iter->provide_data()[0].shape == TShape{4, 3, 24, 40});
  std::set<std::vector<int64_t>> met;
  for (const int64_t epoch : {0, 1, 2}) {
    iter->Reset(epoch, 0);
    for (auto& [shape, one] : of_one_size) one->Reset(epoch, 0);
    DataBatch batch, expected;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<DataBatch> held;  // batches of several sizes at once
    while (iter->Next(&batch)) {
      const TShape shape = batch.data[0].shape();
      shapes.emplace_back(shape.begin(), shape.end());
      met.insert(shapes.back());
      for (auto& [size, one] : of_one_size) {
        DataBatch of_size;
        REQUIRE(one->Next(&of_size));
        if (size == shapes.back()) expected = std::move(of_size);
      }
      CHECK(AllOf(batch) == AllOf(expected));
      CHECK(batch.index == expected.index);
      const BatchArrays arrays = ArraysOfBatch(*iter, batch);
      CHECK(arrays.data[0].shape == shape);
      CHECK(arrays.label[0].shape == batch.label[0].shape());
      if (held.size() < 3) held.push_back(batch);
    }
    REQUIRE(shapes.size() == 10);
    for (size_t i = 0; i + 1 < shapes.size(); i += 2) CHECK(shapes[i] == shapes[i + 1]);
  }
  CHECK(met.size() == 3);
}

TEST_CASE("an epoch of several sizes continues where it was left, and its parts agree on sizes") {
  Runtime runtime = MakeRuntime();
  const auto whole = NewMultiScalePipeline(runtime, SomeScenes(), ThreeSizes(), ScaledParam());
  const auto later = NewMultiScalePipeline(runtime, SomeScenes(), ThreeSizes(), ScaledParam());
  const auto part = NewMultiScalePipeline(runtime, SomeScenes(), ThreeSizes(), [] {
    PipelineParam param = ScaledParam({{"num_parts", "2"}, {"part_index", "1"}});
    param.batch_size = 2;
    return param;
  }());
  whole->Reset(3, 0);
  part->Reset(3, 0);
  later->Reset(3, 5);
  DataBatch a, b, c;
  for (int k = 0; k < 10; ++k) {
    REQUIRE(whole->Next(&a));
    REQUIRE(part->Next(&b));
    CHECK(a.data[0].shape()[2] == b.data[0].shape()[2]);
    if (k < 5) continue;
    REQUIRE(later->Next(&c));
    CHECK(AllOf(a) == AllOf(c));
  }
}

TEST_CASE("the last epochs have the usual size, and a cache is refused") {
  MultiScale scales = ThreeSizes();
  scales.epochs = 2;
  std::set<size_t> drawn;
  for (int64_t batch = 0; batch < 60; ++batch) {
    drawn.insert(scales.Draw(kScaleSeed, 1, batch));
    CHECK(scales.Draw(kScaleSeed, 2, batch) == 1);
    CHECK(scales.Draw(kScaleSeed, 0, batch) == scales.Draw(kScaleSeed, 0, batch / 2 * 2));
  }
  CHECK(drawn == std::set<size_t>{0, 1, 2});
  Runtime runtime = MakeRuntime();
  CHECK(
      MessageOf([&] {
        NewMultiScalePipeline(runtime, SomeScenes(), ThreeSizes(), ScaledParam({{"cache", "ram"}}));
      }) == "cache: ram keeps images of one size, and these have several");
}

}  // namespace mxtrain::test
