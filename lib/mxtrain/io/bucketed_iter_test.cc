// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/bucketed_iter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/naive_runtime.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::io {
namespace {

using test::TempDir;
using Indices = std::vector<int64_t>;

std::vector<std::pair<int64_t, Indices>> Buckets(const Indices& of_examples, const Indices& lengths,
                                                 int64_t least) {
  std::vector<std::pair<int64_t, Indices>> all;
  for (const Bucket& bucket : MakeBuckets(of_examples, lengths, least))
    all.emplace_back(bucket.length, bucket.examples);
  return all;
}
using Made = std::vector<std::pair<int64_t, Indices>>;

TEST_CASE("an example is in the first bucket that it fits in") {
  CHECK(Buckets({3, 9, 4, 1, 6, 20}, {4, 6, 10}, 1) ==
        Made{{4, {0, 2, 3}}, {6, {4}}, {10, {1, 5}}});
  // Without any of its own a bucket is skipped, but for the last, which takes the longest.
  CHECK(Buckets({1, 2, 7}, {4, 6, 10}, 1) == Made{{4, {0, 1}}, {10, {2}}});
  CHECK(Buckets({1, 2, 3}, {4, 6, 10}, 1) == Made{{4, {0, 1}}, {10, {2}}});
  CHECK(Buckets({5}, {4, 6, 10}, 1) == Made{{10, {0}}});
}

TEST_CASE("a bucket with less than a batch takes the longest of the shorter ones") {
  CHECK(Buckets({1, 2, 3, 5, 6, 9}, {4, 6, 10}, 2) == Made{{4, {0, 1}}, {6, {2, 3}}, {10, {4, 5}}});
  // The shortest is joined with the next.
  CHECK(Buckets({1, 5, 6, 9}, {4, 6, 10}, 2) == Made{{6, {0, 1}}, {10, {2, 3}}});
  CHECK(Buckets({1, 2}, {4, 10}, 5) == Made{{10, {0, 1}}});
  // No example is lost, whatever the numbers.
  uint32_t draw = 7;
  for (int i = 0; i < 200; ++i) {
    const auto next = [&draw](uint32_t below) {
      draw = draw * 1664525u + 1013904223u;
      return static_cast<int64_t>((draw >> 16) % below);
    };
    Indices of_examples(static_cast<size_t>(1 + next(40)));
    for (int64_t& length : of_examples) length = next(30);
    const int64_t least = 1 + next(8);
    Indices seen;
    int64_t before = 0;
    const auto made = MakeBuckets(of_examples, Indices{5, 9, 14, 25}, least);
    for (const Bucket& bucket : made) {
      CHECK(bucket.length > before);
      before = bucket.length;
      if (made.size() > 1) CHECK(std::ssize(bucket.examples) >= least);
      for (const int64_t i_example : bucket.examples) {
        if (bucket.length < 25) CHECK(of_examples[static_cast<size_t>(i_example)] <= bucket.length);
        seen.push_back(i_example);
      }
    }
    std::sort(seen.begin(), seen.end());
    Indices all(of_examples.size());
    std::iota(all.begin(), all.end(), 0);
    CHECK(seen == all);
    CHECK(before == 25);
  }
}

// Texts of 1 to 12 words in buckets of 4, 8 and 12.
struct BucketedTexts {
  TempDir dir;
  Runtime runtime{test::NaiveOptions(), nullptr};
  std::shared_ptr<const Source> source;
  std::unique_ptr<DataIter> iter;

  explicit BucketedTexts(bool training) {
    std::string lines = "label\ttext\n";
    for (int i = 0; i < 61; ++i) {
      lines += i % 2 == 0 ? "even\t" : "odd\t";
      for (int k = 0; k <= i * 7 % 12; ++k) lines += format("{}w{}", k > 0 ? " " : "", i);
      lines += '\n';
    }
    dir.Write("texts.tsv", lines);
    source = MakeSource("labelled_text", {{"path", dir.path("texts.tsv")}, {"length", "12"}});
    const Indices lengths = {4, 8, 12};
    std::vector<Bucket> buckets =
        MakeBuckets(LengthsOfLists(*source, static_cast<float>(source->num_tokens() - 1)), lengths,
                    training ? 4 : 1);
    std::vector<std::unique_ptr<DataIter>> iters;
    for (const Bucket& bucket : buckets) {
      PipelineParam param;
      param.Init({{"batch_size", "4"},
                  {"seed", "5"},
                  {"workers", "1"},
                  {"shuffle", training ? "True" : "False"},
                  {"mode", training ? "training" : "evaluation"}},
                 "test");
      iters.push_back(NewPipeline(
          runtime, NewShortenedLists(NewExamplesOf(source, bucket.examples), bucket.length), {},
          param));
    }
    iter = NewBucketedIter(source, std::move(buckets), std::move(iters), 5, training);
  }

  struct Seen {
    TShape shape;
    Indices index;
    std::vector<float> values;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> Read(int64_t epoch, int64_t first) {
    std::vector<Seen> batches;
    iter->Reset(epoch, first);
    DataBatch batch;
    while (iter->Next(&batch)) {
      CHECK(batch.batch == first + std::ssize(batches));
      batches.push_back({batch.data[0].shape(), batch.index, batch.data[0].ToVector()});
    }
    return batches;
  }
};

TEST_CASE("batches of the buckets, in an order that continues at any batch") {
  BucketedTexts texts(/*training=*/true);
  CHECK(texts.iter->provide_data()[0].shape == TShape{4, 12});
  REQUIRE(texts.iter->sizes().size() == 3);
  CHECK(texts.iter->sizes()[0].data[0].shape == TShape{4, 4});
  const auto whole = texts.Read(2, 0);
  CHECK(std::ssize(whole) == texts.iter->batches_per_epoch());
  std::set<int64_t> lengths;
  int changes = 0;
  for (size_t b = 0; b < whole.size(); ++b) {
    lengths.insert(whole[b].shape[1]);
    if (b > 0) changes += whole[b].shape != whole[b - 1].shape;
    Sample sample;
    for (size_t row = 0; row < whole[b].index.size(); ++row) {
      texts.source->Read(whole[b].index[row], &sample);
      const auto length = static_cast<size_t>(whole[b].shape[1]);
      for (size_t k = 0; k < 12; ++k) {
        const float value = sample.data[0].values[k];
        if (k < length) {
          CHECK(whole[b].values[row * length + k] == value);
        } else {
          CHECK(value ==
                static_cast<float>(texts.source->num_tokens() - 1));  // only padding is cut
        }
      }
    }
  }
  CHECK(lengths == std::set<int64_t>{4, 8, 12});
  CHECK(changes > 3);  // not one bucket after another
  for (int64_t first = 0; first <= std::ssize(whole); ++first) {
    const auto rest = texts.Read(2, first);
    CHECK(rest == std::vector(whole.begin() + first, whole.end()));
  }
  CHECK_FALSE(texts.Read(3, 0) == whole);
  CHECK(texts.Read(2, 0) == whole);
  CHECK_THROWS_AS(texts.iter->Reset(0, std::ssize(whole) + 1), Error);
}

TEST_CASE("evaluation has every example once, bucket by bucket") {
  BucketedTexts texts(/*training=*/false);
  Indices seen;
  int64_t before = 0;
  for (const auto& batch : texts.Read(0, 0)) {
    CHECK(batch.shape[1] >= before);
    before = batch.shape[1];
    seen.insert(seen.end(), batch.index.begin(), batch.index.end());
  }
  std::sort(seen.begin(), seen.end());
  Indices all(61);
  std::iota(all.begin(), all.end(), 0);
  CHECK(seen == all);
  CHECK(texts.iter->examples() == 61);
  CHECK(texts.iter->ExampleName(2) == texts.source->Name(2));
}

}  // namespace
}  // namespace mxtrain::io
