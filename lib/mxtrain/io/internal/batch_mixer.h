// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixes the examples of a batch in pairs, the first with the last and so on (in a shuffled epoch
// any pairing is equivalent):
//   mixup   x_i' = l x_i + (1 - l) x_j                  (Zhang et al., arXiv 1710.09412)
//   cutmix  x_i' is x_i with a box of x_j in its place  (Yun et al., arXiv 1905.04899)
// l is the fraction of x_i that stays. Labels, which are distributions over classes, are mixed by
// the same l. Where examples have weights w, the mixed one has l w_i + (1 - l) w_j, and the labels
// have the share l w_i / (l w_i + (1 - l) w_j), so that the weighted loss, which is linear in the
// label, is the mix of the weighted losses. l is drawn from Beta(alpha, alpha) per pair; if both
// are on, either is chosen with equal probability.
//
// Where labels are boxes, mixup has other pairs, each example with the next and the last with the
// first, so that no two images are of the same objects in the same places; the mixed image has the
// objects of both, learnt alike whatever l is (Zhang et al. 2019, "Bag of Freebies for Training
// Object Detection", arXiv 1902.04103; YOLOX, with l = 1/2).
//
// A function of (seed, epoch, batch), independent of threads. Private to io.
#include <cstdint>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/internal/example_loader.h"
#include "mxtrain/io/random_stream.h"

namespace mxtrain::io {

// Options of mixup or cutmix.
struct MixOptions {
  double alpha = 0;     // 0: off
  int64_t epochs = -1;  // number of first epochs with it; negative: all
};

// Immutable: calls may come from any thread.
class BatchMixer {
 public:
  BatchMixer(const MixOptions& mixup, const MixOptions& cutmix, uint64_t seed)
      : mixup_(mixup), cutmix_(cutmix), seed_(seed) {}

  // Throws kConfig unless all labels are numbers, or, without cutmix, all are boxes of images.
  void Check(const Source& source) const;
  bool mixes() const { return mixup_.alpha > 0 || cutmix_.alpha > 0; }

  // Mixes the first `count` rows of a batch of float32, in place. Cutmix exchanges boxes of images
  // (fields with three axes) and blends other fields. Labels of boxes have room for those of two
  // examples beside what they hold (LoaderOptions::box_rows).
  void Mix(int64_t epoch, int64_t batch, int64_t count, const ExampleLoader& loader,
           const BatchPointers& rows) const;

 private:
  void MixNeighbours(int64_t count, const ExampleLoader& loader, const BatchPointers& rows,
                     RandomStream* random) const;

  MixOptions mixup_, cutmix_;
  uint64_t seed_;
};

}  // namespace mxtrain::io
