// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/internal/tile_reorder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;  // minimum work for an additional thread

using Quad = uint32_t __attribute__((vector_size(16)));
constexpr int64_t kQuad = 4;

Quad Load(const uint32_t* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof(Quad));
  return quad;
}
void Store(Quad quad, uint32_t* to) {
  std::memcpy(to, &quad, sizeof(Quad));
}
Quad ZipLow(Quad a, Quad b) {
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
Quad ZipHigh(Quad a, Quad b) {
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

// dst[j][i] = src[i][j] for 4x4 elements with row strides `from` and `to`.
void TurnQuads(const uint32_t* src, int64_t from, uint32_t* dst, int64_t to) {
  const Quad a = Load(src), b = Load(src + from), c = Load(src + 2 * from),
             d = Load(src + 3 * from);
  const Quad low_even = ZipLow(a, c), low_odd = ZipLow(b, d), high_even = ZipHigh(a, c),
             high_odd = ZipHigh(b, d);
  Store(ZipLow(low_even, low_odd), dst);
  Store(ZipHigh(low_even, low_odd), dst + to);
  Store(ZipLow(high_even, high_odd), dst + 2 * to);
  Store(ZipHigh(high_even, high_odd), dst + 3 * to);
}

// dst [columns][rows] = transpose of src [rows][columns].
template <typename T>
void TurnTile(const T* src, int64_t rows, int64_t columns, T* dst) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) dst[j * rows + i] = src[i * columns + j];
  }
}
template <>
void TurnTile<uint32_t>(const uint32_t* src, int64_t rows, int64_t columns, uint32_t* dst) {
  if (rows % kQuad != 0 || columns % kQuad != 0) {
    for (int64_t at = 0; at < rows * columns; ++at)
      dst[at % columns * rows + at / columns] = src[at];
    return;
  }
  for (int64_t j = 0; j < columns; j += kQuad) {
    for (int64_t i = 0; i < rows; i += kQuad)
      TurnQuads(src + i * columns + j, columns, dst + j * rows + i, rows);
  }
}

// Tiles in the order of `to`, so that writes are sequential.
template <typename T>
void Move(const BlockedLayout& from, const T* src, const BlockedLayout& to, T* dst,
          const TShape& shape, bool turn) {
  const int64_t rows = from.blocks()[0].size, columns = from.blocks()[1].size,
                tile = rows * columns;
  const TShape padded = to.PaddedShape(shape);
  std::vector<std::vector<int64_t>> places;  // of each block along each axis
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const std::vector<int64_t> table = from.OffsetTable(shape, axis);
    std::vector<int64_t>& starts = places.emplace_back();
    for (size_t i = 0; i < table.size(); i += static_cast<size_t>(from.BlockOf(axis)))
      starts.push_back(table[i]);
  }
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / (tile * static_cast<int64_t>(sizeof(T))));
  ParallelFor(padded.Size() / tile, grain, [&](int64_t begin, int64_t end) {
    const auto axes = static_cast<size_t>(shape.ndim());
    std::array<int64_t, TShape::kMaxDims> index;  // of the tile, in blocks, along each axis
    int64_t rest = begin;
    for (size_t k = axes; k-- > 0;) {
      const auto axis = static_cast<size_t>(to.order()[k]);
      const int64_t length = static_cast<int64_t>(places[axis].size());
      index[axis] = rest % length;
      rest /= length;
    }
    for (int64_t number = begin; number < end; ++number) {
      int64_t place = 0;
      for (size_t axis = 0; axis < axes; ++axis)
        place += places[axis][static_cast<size_t>(index[axis])];
      if (turn) {
        TurnTile(src + place, rows, columns, dst + number * tile);
      } else {
        std::copy_n(src + place, tile, dst + number * tile);
      }
      for (size_t k = axes; k-- > 0;) {
        const auto axis = static_cast<size_t>(to.order()[k]);
        if (++index[axis] < static_cast<int64_t>(places[axis].size())) break;
        index[axis] = 0;
      }
    }
  });
}

}  // namespace

bool ReorderTiles(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  const auto* a = dynamic_cast<const BlockedLayout*>(from.layout.desc());
  const auto* b = dynamic_cast<const BlockedLayout*>(to.layout.desc());
  if (!a || !b || a->blocks().size() != 2 || b->blocks().size() != 2 ||
      a->blocks()[0].axis == a->blocks()[1].axis)
    return false;
  const bool same = a->blocks() == b->blocks();
  if (!same && !std::equal(a->blocks().begin(), a->blocks().end(), b->blocks().rbegin()))
    return false;
  const auto move = [&](auto type) {
    using T = decltype(type);
    Move(*a, static_cast<const T*>(src), *b, static_cast<T*>(dst), to.shape, !same);
    return true;
  };
  switch (SizeOf(to.type)) {
    case 1:
      return move(uint8_t{});
    case 2:
      return move(uint16_t{});
    case 4:
      return move(uint32_t{});
    default:
      return move(uint64_t{});
  }
}

}  // namespace mxtrain
