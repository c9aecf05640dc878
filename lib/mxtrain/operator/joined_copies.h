// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies of rows between several arrays in one launch on a GPU: the parts of a Concat or of a
// SliceChannel, and of their gradients. Copied one by one, each part writes (or reads) short pieces
// of rows that are far apart.
#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/view_moves.h"

namespace mxtrain {

namespace detail {

struct alignas(16) [[gnu::may_alias]] Word {
  uint64_t low, high;
};

// The rows of several arrays side by side, word by word.
struct JoinedRows {
  static constexpr int kMost = 16;
  struct Part {
    const Word* from;
    Word* to;
    int64_t from_step, to_step;  // words from row to row
    uint32_t begin;              // words of a row in the parts before
  };
  FastDivider width;
  int count;
  Part parts[kMost];

  MXTRAIN_HD void operator()(int64_t index) const {
    uint32_t row = 0, word = 0;
    width.DivideSmall(static_cast<uint32_t>(index), &row, &word);
    int p = 0;
    while (p + 1 < count && word >= parts[p + 1].begin) ++p;
    const Part& part = parts[p];
    const uint32_t within = word - part.begin;
    part.to[row * part.to_step + within] = part.from[row * part.from_step + within];
  }
};

}  // namespace detail

class JoinedCopies {
 public:
  // Whether a copy may take part: rows of both arrays consist of words.
  static bool Takes(const MergedMove& move, const TBlob& from, const TBlob& to) {
    const int64_t size = SizeOf(to.type);
    const auto words = [&](int64_t elements) { return elements * size % kWordBytes == 0; };
    const MergedMove::Axis &run = RunOf(move), rows = RowsOf(move);
    return move.summed == 0 && move.kept <= 2 && from.type == to.type && run.from == 1 &&
           run.to == 1 && words(run.dim) && words(rows.from) && words(rows.to) &&
           words(move.from) && words(move.to) && InWords(from.data) && InWords(to.data);
  }

  int count() const { return joined_.count; }
  // False, and nothing has changed: it is full, or the rows of those that it has are others in
  // number. The first copy is always added.
  bool Add(const MergedMove& move, const TBlob& from, const TBlob& to) {
    const int64_t size = SizeOf(to.type);
    const MergedMove::Axis rows = RowsOf(move);
    const int64_t width = RunOf(move).dim * size / kWordBytes;
    if (count() > 0 &&
        (count() == kMost || rows.dim != rows_ || !FastDivider::Small(rows_ * (width_ + width))))
      return false;
    const auto at = [&](const TBlob& array, int64_t element) {
      return reinterpret_cast<detail::Word*>(array.dptr<char>() + element * size);
    };
    joined_.parts[joined_.count++] = {at(from, move.from), at(to, move.to),
                                      rows.from * size / kWordBytes, rows.to * size / kWordBytes,
                                      static_cast<uint32_t>(width_)};
    rows_ = rows.dim;
    width_ += width;
    return true;
  }

  template <typename Device>
  void Run(const Device& device) const {
    detail::JoinedRows body = joined_;
    body.width = FastDivider(width_);
    Launch(device, rows_ * width_, body);
  }

 private:
  static constexpr int kMost = detail::JoinedRows::kMost;
  static constexpr int64_t kWordBytes = sizeof(detail::Word);

  static const MergedMove::Axis& RunOf(const MergedMove& move) { return move.axes[move.kept - 1]; }
  static MergedMove::Axis RowsOf(const MergedMove& move) {
    return move.kept == 2 ? move.axes[0] : MergedMove::Axis{};
  }
  static bool InWords(const void* data) {
    return reinterpret_cast<uintptr_t>(data) % kWordBytes == 0;
  }

  detail::JoinedRows joined_{};
  int64_t rows_ = 0, width_ = 0;  // words of a row of all parts
};

}  // namespace mxtrain
