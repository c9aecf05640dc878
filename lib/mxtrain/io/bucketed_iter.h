// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bucketing: examples of similar length make a batch, so that little of it is padding. A bucket is
// the examples of at most some length, with batches of that length from an iterator of its own; a
// BucketedIter gives the batches of all of them in one order. MXNet's BucketSentenceIter is the
// case of tokens.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

// The examples of a source whose length is a bucket's, by their indices in it.
struct Bucket {
  int64_t length = 0;
  std::vector<int64_t> examples;
};

// Each example in the first of the rising `lengths` that is at least its own, those beyond the last
// one in that. A bucket of fewer than `least` examples, such as a batch of training, which drops
// incomplete ones, takes the longest of the shorter buckets, and the shortest, which cannot, is
// joined with the next. Without any of its own a bucket is skipped, but for the last.
MXTRAIN_API std::vector<Bucket> MakeBuckets(std::span<const int64_t> of_examples,
                                            std::span<const int64_t> lengths, int64_t least);

// Lengths of examples that are lists of ids: behind the last one that is not `padding`. Throws
// kConfig unless the source has one data field, a list.
MXTRAIN_API std::vector<int64_t> LengthsOfLists(const Source& source, float padding);
// Widths of the images, scaled to a height with their proportions kept, by the headers of the
// files; 0 of one that cannot be read. Throws kConfig unless the source has one data field, an
// image.
MXTRAIN_API std::vector<int64_t> WidthsOfImages(const Source& source, int64_t height);

// The examples of a source by their indices, each a list, of which `length` values are given.
MXTRAIN_API std::shared_ptr<const Source> NewShortenedLists(std::shared_ptr<const Source> source,
                                                            int64_t length);
// Those examples as they are.
MXTRAIN_API std::shared_ptr<const Source> NewExamplesOf(std::shared_ptr<const Source> source,
                                                        std::vector<int64_t> indices);

// The batches of several iterators over the buckets of one source. `iters`: in the order of the
// buckets, of the same names and types. An epoch has all batches of each. With `shuffle` their
// order depends on (seed, epoch) alone, so that an epoch continues at any batch exactly as if it
// had not been interrupted; else it is that of the buckets. provide_data is that of the last, the
// longest one; sizes() has those of all.
MXTRAIN_API std::unique_ptr<DataIter> NewBucketedIter(std::shared_ptr<const Source> source,
                                                      std::vector<Bucket> buckets,
                                                      std::vector<std::unique_ptr<DataIter>> iters,
                                                      uint64_t seed, bool shuffle);

}  // namespace mxtrain::io
