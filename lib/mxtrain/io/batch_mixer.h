#pragma once
// Mixes the examples of a batch in pairs, the first with the last and so on, which in a shuffled epoch is as good as any other choice:
//   mixup   x_i' = l x_i + (1 - l) x_j                  (Zhang et al., arXiv 1710.09412)
//   cutmix  x_i' is x_i with a box of x_j in its place  (Yun et al., arXiv 1905.04899); l is the part of the picture that stays
// Labels, which are distributions over classes, are mixed by the same l. l is drawn from Beta(alpha, alpha), for each pair anew; where both
// are on, either is taken with equal chance. A function of (seed, epoch, batch): threads do not matter. Private to io.
#include <cstdint>
#include <vector>

#include "mxtrain/base/shape.h"
#include "mxtrain/io/example_loader.h"

namespace mxtrain::io {

// Of one way to mix.
struct MixOptions {
  double alpha = 0;     // 0: off
  int64_t epochs = -1;  // in which it is on, from the first; negative: all
};

// Immutable: calls may come from any thread.
class BatchMixer {
 public:
  BatchMixer(const MixOptions& mixup, const MixOptions& cutmix, uint64_t seed) : mixup_(mixup), cutmix_(cutmix), seed_(seed) {}

  // Mixes the first `count` rows of a batch of float32, in place. Cutmix exchanges boxes of pictures, fields of three axes, and blends what is none.
  void Mix(int64_t epoch, int64_t batch, int64_t count, const ExampleLoader& loader, const BatchPointers& rows) const;

 private:
  MixOptions mixup_, cutmix_;
  uint64_t seed_;
};

}  // namespace mxtrain::io
