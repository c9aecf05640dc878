// SPDX-License-Identifier: Apache-2.0
#pragma once
// How attention by vectors divides its arrays: blocks of queries and keys, and their packed copies
// as floats, which the products of attention_kernels.h read.
#include <algorithm>
#include <limits>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_kernels.h"
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace mxtrain::attention {

inline constexpr float kNever = -std::numeric_limits<float>::infinity();
inline constexpr int64_t kMostQueries = 64, kMostKeys = 128;  // of a block

// The extents of blocks and of packed arrays.
struct Blocks {
  int64_t count = 0;                                 // of blocks of queries
  int64_t queries = 0, keys = 0;                     // of a block; keys is the length of its rows
  int64_t all_keys = 0, depth = 0, value_depth = 0;  // padded

  explicit Blocks(const Extents& e, int64_t most_queries = kMostQueries)
      : count(CeilDivide(e.queries, most_queries)),
        queries(CeilDivide(e.queries, count)),
        keys(std::min(kMostKeys, RoundUp(e.keys, kPadding))),
        all_keys(RoundUp(e.keys, kPadding)),
        depth(RoundUp(e.depth, kPadding)),
        value_depth(RoundUp(e.value_depth, kPadding)) {}
  int64_t scores() const { return queries * keys; }
};
// Causal queries have small blocks: less of what they do not see is computed.
inline Blocks BlocksOf(const AttentionSetup& setup) {
  return Blocks(setup.extents, setup.is_causal ? kMostQueries / 2 : kMostQueries);
}

// Hands out parts of a thread's workspace. Without a workspace it counts.
class Space {
 public:
  explicit Space(float* at) : at_(at) {}
  float* Take(int64_t n) {
    float* result = at_ ? at_ + taken_ : nullptr;
    taken_ += RoundUp(n, kPadding);
    return result;
  }
  int64_t taken() const { return taken_; }

 private:
  float* at_;
  int64_t taken_ = 0;
};

// to [rows, padded] = from [rows, columns] times the factor, zeros behind.
template <typename T>
void Pack(const T* from, int64_t rows, int64_t columns, float factor, int64_t padded, float* to) {
  for (int64_t r = 0; r < rows; ++r, from += columns, to += padded) {
    for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<float>(from[c]) * factor;
    std::fill(to + columns, to + padded, 0.0f);
  }
}
// to [columns, padded] = the transpose of from [rows, columns], zeros behind.
template <typename T>
void PackAcross(const T* from, int64_t rows, int64_t columns, int64_t padded, float* to) {
  for (int64_t first = 0; first < padded; first += kPadding) {
    const int64_t n = std::clamp<int64_t>(rows - first, 0, kPadding);
    for (int64_t c = 0; c < columns; ++c) {
      float* row = to + c * padded + first;
      for (int64_t r = 0; r < n; ++r) row[r] = static_cast<float>(from[(first + r) * columns + c]);
      std::fill(row + n, row + kPadding, 0.0f);
    }
  }
}
// to [rows, columns] = from [rows, padded] times the factor, or += it.
template <typename T>
void Unpack(const float* from, int64_t rows, int64_t columns, int64_t padded, float factor,
            OpReqType req, T* to) {
  SwitchReq(req, [&](auto accumulate) {
    constexpr OpReqType kReq = accumulate() ? OpReqType::kAddTo : OpReqType::kWriteTo;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        Assign(kReq, to + r * columns, c, from[r * padded + c] * factor);
    }
  });
}

}  // namespace mxtrain::attention
