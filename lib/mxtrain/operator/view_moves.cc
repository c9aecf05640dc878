// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/view_moves.h"

#include <algorithm>

#include "mxtrain/base/math.h"

namespace mxtrain {
namespace {

using Axis = MergedMove::Axis;

// Merges neighbours that are one axis in both views. Returns how many are left.
int MergeNeighbours(Axis* axes, int count) {
  int merged = 0;
  for (int i = 0; i < count; ++i) {
    const Axis inner = axes[i];
    Axis* outer = merged > 0 ? &axes[merged - 1] : nullptr;
    if (outer && outer->from == inner.dim * inner.from && outer->to == inner.dim * inner.to) {
      *outer = {outer->dim * inner.dim, inner.from, inner.to};
    } else {
      axes[merged++] = inner;
    }
  }
  return merged;
}

int64_t ProductOf(const Axis* axes, int count) {
  int64_t size = 1;
  for (int i = 0; i < count; ++i) size *= axes[i].dim;
  return size;
}

}  // namespace

MergedMove Merge(const StridedView& from, const StridedView& to) {
  MXTRAIN_ASSERT(from.ndim == to.ndim);
  MergedMove merged;
  merged.from = from.offset;
  merged.to = to.offset;
  Axis kept[StridedView::kMaxAxes], summed[StridedView::kMaxAxes];
  for (int i = 0; i < from.ndim; ++i) {
    MXTRAIN_ASSERT(from.dim[i] == to.dim[i]);
    Axis axis{from.dim[i], from.stride[i], to.stride[i]};
    if (axis.dim == 1) continue;
    if (axis.dim > 0 && (axis.to < 0 || (axis.to == 0 && axis.from < 0))) {
      merged.from += (axis.dim - 1) * axis.from;
      merged.to += (axis.dim - 1) * axis.to;
      axis.from = -axis.from;
      axis.to = -axis.to;
    }
    if (axis.to == 0) {
      summed[merged.summed++] = axis;
    } else {
      kept[merged.kept++] = axis;
    }
  }
  std::sort(kept, kept + merged.kept, [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::sort(summed, summed + merged.summed,
            [](const Axis& a, const Axis& b) { return a.from > b.from; });
  merged.kept = MergeNeighbours(kept, merged.kept);
  merged.summed = MergeNeighbours(summed, merged.summed);
  merged.kept_size = ProductOf(kept, merged.kept);
  merged.summed_size = ProductOf(summed, merged.summed);
  if (merged.kept == 0) kept[merged.kept++] = {1, 1, 1};
  std::copy_n(kept, merged.kept, merged.axes);
  std::copy_n(summed, merged.summed, merged.axes + merged.kept);
  return merged;
}

int TransposedAxis(const MergedMove& move, int64_t unit) {
  constexpr int64_t kLongRepeat = 16;  // elements: a row of one value is written as such
  const Axis& last = move.axes[move.kept - 1];
  if (last.to != unit || last.from == unit || (last.from == 0 && last.dim >= kLongRepeat))
    return -1;
  for (int i = 0; i + 1 < move.kept; ++i) {
    if (move.axes[i].from == unit) return i;
  }
  return -1;
}

int64_t WordOf(const MergedMove& move, int64_t size, const void* from, const void* to) {
  const Axis& last = move.axes[move.kept - 1];
  if (last.from != 1 || last.to != 1) return size;
  // What must be a multiple of a word, as bits, in bytes.
  uint64_t places = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  const auto add = [&](int64_t elements) { places |= static_cast<uint64_t>(elements * size); };
  add(move.from);
  add(move.to);
  add(last.dim);
  for (int i = 0; i + 1 < move.kept; ++i) {
    add(move.axes[i].from);
    add(move.axes[i].to);
  }
  int64_t word = 16;
  while (word > size && places % static_cast<uint64_t>(word) != 0) word /= 2;
  return std::max(word, size);
}

MergedMove InWords(const MergedMove& move, int64_t count) {
  MergedMove words = move;
  words.from /= count;
  words.to /= count;
  words.kept_size /= count;
  const int last = move.kept - 1;
  words.axes[last].dim /= count;
  for (int i = 0; i < last; ++i) {
    words.axes[i].from /= count;
    words.axes[i].to /= count;
  }
  return words;
}

MergedMove TilesOf(const MergedMove& move, int axis, int64_t rows, int64_t columns) {
  MergedMove tiles;
  tiles.from = move.from;
  tiles.to = move.to;
  const auto add = [&tiles](const Axis& one) {
    tiles.axes[tiles.kept++] = one;
    tiles.kept_size *= one.dim;
  };
  const auto add_tiles = [&add](const Axis& one, int64_t edge) {
    add({CeilDivide(one.dim, edge), edge * one.from, edge * one.to});
  };
  const int last = move.kept - 1;
  for (int i = 0; i < last; ++i) {
    if (i != axis) add(move.axes[i]);
  }
  add_tiles(move.axes[axis], rows);
  add_tiles(move.axes[last], columns);
  return tiles;
}

}  // namespace mxtrain
