// SPDX-License-Identifier: Apache-2.0
#pragma once
// The peak rates of a device, as a reference for a net: products of large matrices and copies of
// large arrays.
#include <memory>

#include "mxtrain/executor/executor.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// The product of two square matrices on `ctx`, computed like a layer of a net with that type and
// math mode.
class MatrixProduct {
 public:
  MatrixProduct(Runtime& runtime, Context ctx, Math math, DType type);
  void Push() { executor_->Forward({}); }
  double flops() const;  // floating-point operations of one

 private:
  const int64_t side_;
  std::unique_ptr<Executor> executor_;
};

// The copy of an array larger than any cache.
class LargeCopy {
 public:
  LargeCopy(Runtime& runtime, Context ctx);
  void Push() { to_.CopyFrom(from_); }
  double bytes() const {
    return 2 * static_cast<double>(from_.spec().Bytes());
  }  // read and written by one

 private:
  NDArray from_, to_;
};

}  // namespace mxtrain::commands
