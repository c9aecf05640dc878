// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/internal/reorder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/internal/tile_reorder.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/device/derived_layout.h"

namespace mxtrain {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;  // minimum work for an additional thread

const BlockedLayout* Blocked(const TensorSpec& spec) {
  if (spec.layout.plain()) return nullptr;
  const auto* layout = dynamic_cast<const BlockedLayout*>(spec.layout.desc());
  if (!layout) Throw(ErrorKind::kBug, "the CPU cannot convert the layout {}", spec.layout.Name());
  return layout;
}

std::vector<int64_t> TableOf(const TensorSpec& spec, int axis) {
  const BlockedLayout* layout = Blocked(spec);
  return layout ? layout->OffsetTable(spec.shape, axis) : PlainOffsetTable(spec.shape, axis);
}

// Axes in order, with one inner block on axis 0 or 1 ("aBcd8b"): viewed as [outer, C/b, inner, b],
// a plain array as [outer, C, inner].
struct OneBlock {
  int64_t outer, length, inner, block;
};

std::optional<OneBlock> OneBlockOf(const TensorSpec& spec) {
  const BlockedLayout* layout = Blocked(spec);
  if (!layout || layout->blocks().size() != 1 || layout->blocks()[0].axis > 1) return std::nullopt;
  if (!std::is_sorted(layout->order().begin(), layout->order().end())) return std::nullopt;
  const auto [axis, block] = layout->blocks()[0];
  return OneBlock{spec.shape.Product(0, axis), spec.shape[axis],
                  spec.shape.Product(axis + 1, spec.shape.ndim()), block};
}

// Between plain [outer, C, S] and blocked [outer, ceil(C/b), S, b]: a b x S transposition for each
// pair (outer, block). `kB` is b if known at compile time, else 0.
template <int kB, bool kToBlocked, typename From, typename To>
void MoveBlocksOf(const OneBlock& tiling, const From* src, To* dst) {
  const int64_t b = kB ? kB : tiling.block;
  const int64_t length = tiling.length, inner = tiling.inner, blocks = CeilDivide(length, b);
  const int64_t grain = std::max<int64_t>(
      1, kGrainBytes / std::max<int64_t>(1, b * inner * static_cast<int64_t>(sizeof(To))));
  ParallelFor(tiling.outer * blocks, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks, first = i % blocks * b, valid = std::min(b, length - first);
      const int64_t plain_base = (n * length + first) * inner, blocked_base = i * inner * b;
      for (int64_t s = 0; s < inner; ++s) {
        if constexpr (kToBlocked) {
          const From* from = src + plain_base + s;
          To* to = dst + blocked_base + s * b;
          if (valid == b) {
            for (int64_t k = 0; k < b; ++k) to[k] = static_cast<To>(from[k * inner]);
          } else {
            for (int64_t k = 0; k < b; ++k)
              to[k] = k < valid ? static_cast<To>(from[k * inner]) : To{};
          }
        } else {
          const From* from = src + blocked_base + s * b;
          To* to = dst + plain_base + s;
          for (int64_t k = 0; k < valid; ++k) to[k * inner] = static_cast<To>(from[k]);
        }
      }
    }
  });
}

template <bool kToBlocked, typename From, typename To>
void MoveBlocks(const OneBlock& tiling, const From* src, To* dst) {
  if (tiling.block == 8) return MoveBlocksOf<8, kToBlocked>(tiling, src, dst);
  if (tiling.block == 16) return MoveBlocksOf<16, kToBlocked>(tiling, src, dst);
  MoveBlocksOf<0, kToBlocked>(tiling, src, dst);
}

// to[k] = from[place[k]]
template <typename From, typename To>
MXTRAIN_SIMD void Permute(const From* from, const int32_t* place, int64_t n, To* to) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) to[k] = static_cast<To>(from[place[k]]);
}

// Two layouts that divide the axes into the same tiles and differ within them, and perhaps in the
// order of the tiles: "ABcd16b16a" and "BAcd8a16b2a". Each tile of `to` is the same permutation of
// a tile of `from`. (For ReorderTiles, without a type change, the permutation is a transposition,
// for which there are vector instructions.)
class Tiles {
 public:
  static bool Fit(const TensorSpec& from, const TensorSpec& to) {
    const BlockedLayout *a = Blocked(from), *b = Blocked(to);
    if (!a || !b || b->blocks().empty()) return false;
    for (int axis = 0; axis < to.shape.ndim(); ++axis) {
      if (a->BlockOf(axis) != b->BlockOf(axis)) return false;
    }
    return true;
  }

  Tiles(const TensorSpec& from, const TensorSpec& to) : shape_(to.shape), layout_(*Blocked(to)) {
    place_ = {0};
    // Offset in a tile of `to` of the element whose offset in `from` is place_.
    std::vector<int64_t> at = {0};
    for (int axis = 0; axis < shape_.ndim(); ++axis) {
      const std::vector<int64_t> source = TableOf(from, axis), target = TableOf(to, axis);
      const auto block = static_cast<size_t>(layout_.BlockOf(axis));
      std::vector<int32_t> places;
      std::vector<int64_t> targets;
      for (size_t k = 0; k < at.size(); ++k) {
        for (size_t i = 0; i < block; ++i) {
          places.push_back(place_[k] + static_cast<int32_t>(source[i]));
          targets.push_back(at[k] + target[i]);
        }
      }
      place_ = std::move(places);
      at = std::move(targets);
      std::vector<int64_t> first;  // of the tiles along this axis
      for (size_t i = 0; i < source.size(); i += block) first.push_back(source[i]);
      first_.push_back(std::move(first));
    }
    std::vector<int32_t> sorted(place_.size());
    for (size_t k = 0; k < at.size(); ++k) sorted[static_cast<size_t>(at[k])] = place_[k];
    place_ = std::move(sorted);
  }

  template <typename From, typename To>
  void Move(const From* src, To* dst) const {
    int64_t tiles = 1;
    for (const auto& first : first_) tiles *= static_cast<int64_t>(first.size());
    const auto tile = static_cast<int64_t>(place_.size());
    ParallelFor(
        tiles, std::max<int64_t>(1, kGrainBytes / (tile * static_cast<int64_t>(sizeof(To)))),
        [&, tile](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            int64_t rest = i, base = 0;
            for (auto axis = layout_.order().rbegin(); axis != layout_.order().rend(); ++axis) {
              const std::vector<int64_t>& first = first_[static_cast<size_t>(*axis)];
              base += first[static_cast<size_t>(rest) % first.size()];
              rest /= static_cast<int64_t>(first.size());
            }
            Permute(src + base, place_.data(), tile, dst + i * tile);
          }
        });
  }

 private:
  TShape shape_;
  const BlockedLayout& layout_;
  std::vector<int32_t> place_;  // [offset in the target's tile]: offset in the source's tile
  std::vector<std::vector<int64_t>> first_;  // [axis][tile along it]: its offset in the source
};

// The axis along which `to` is written with the smallest stride.
int InnerAxis(const TensorSpec& to) {
  const BlockedLayout* layout = Blocked(to);
  if (!layout) return to.shape.ndim() - 1;
  return layout->blocks().empty() ? layout->order().back() : layout->blocks().back().axis;
}

bool Contiguous(const std::vector<int64_t>& table, int64_t length) {
  for (int64_t i = 0; i < length; ++i) {
    if (table[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

// Any pair of layouts, by one offset table per axis: the inner axis in a loop, the others counted
// like an odometer.
template <typename From, typename To>
void MoveByTables(const TensorSpec& from, const From* src, const TensorSpec& to, To* dst) {
  const TShape& shape = to.shape;
  std::vector<std::vector<int64_t>> from_table, to_table;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    from_table.push_back(TableOf(from, axis));
    to_table.push_back(TableOf(to, axis));
  }
  int inner = shape.ndim() - 1;
  auto contiguous = [&](int axis) {
    const auto a = static_cast<size_t>(axis);
    return Contiguous(from_table[a], shape[axis]) && Contiguous(to_table[a], shape[axis]);
  };
  const bool rows = contiguous(inner);
  if (!rows) inner = InnerAxis(to);
  const int64_t length = shape[inner];
  const int64_t* const from_inner = from_table[static_cast<size_t>(inner)].data();
  const int64_t* const to_inner = to_table[static_cast<size_t>(inner)].data();
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / (length * static_cast<int64_t>(sizeof(To))));
  ParallelFor(shape.Size() / length, grain, [&, inner, rows, length](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, from_base = 0, to_base = 0;
      for (int axis = shape.ndim() - 1; axis >= 0; --axis) {
        if (axis == inner) continue;
        const auto at = static_cast<size_t>(rest % shape[axis]);
        rest /= shape[axis];
        from_base += from_table[static_cast<size_t>(axis)][at];
        to_base += to_table[static_cast<size_t>(axis)][at];
      }
      if (rows) {
        for (int64_t j = 0; j < length; ++j) dst[to_base + j] = static_cast<To>(src[from_base + j]);
      } else {
        for (int64_t j = 0; j < length; ++j)
          dst[to_base + to_inner[j]] = static_cast<To>(src[from_base + from_inner[j]]);
      }
    }
  });
}

void ZeroBytes(void* data, int64_t bytes) {
  ParallelFor(bytes, kGrainBytes, [data](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(data) + begin, 0, static_cast<size_t>(end - begin));
  });
}

template <typename From, typename To>
void ReorderAs(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  if (to.shape.Size() == 0) return;
  const From* s = static_cast<const From*>(src);
  To* d = static_cast<To*>(dst);
  const std::optional<OneBlock> from_block = OneBlockOf(from), to_block = OneBlockOf(to);
  if (from.layout.plain() && to_block) return MoveBlocks<true>(*to_block, s, d);
  if (to.layout.plain() && from_block) return MoveBlocks<false>(*from_block, s, d);
  if (Tiles::Fit(from, to)) return Tiles(from, to).Move(s, d);
  if (to.layout.Padded(to.shape)) ZeroBytes(dst, to.Bytes());
  MoveByTables(from, s, to, d);
}

// Same type, different layout.
void MoveElements(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  if (const DerivedLayout* derived = Derived(to.layout)) return derived->Derive(from, src, dst);
  if (to.shape.Size() == 0 || ReorderTiles(from, src, to, dst)) return;
  switch (SizeOf(to.type)) {
    case 1:
      return ReorderAs<uint8_t, uint8_t>(from, src, to, dst);
    case 2:
      return ReorderAs<uint16_t, uint16_t>(from, src, to, dst);
    case 4:
      return ReorderAs<uint32_t, uint32_t>(from, src, to, dst);
    default:
      return ReorderAs<uint64_t, uint64_t>(from, src, to, dst);
  }
}

[[noreturn]] void Refuse(const TensorSpec& from, const TensorSpec& to) {
  Throw(ErrorKind::kBug, "cannot reorder {} {} to {} {}", NameOf(from.type), from.shape.ToString(),
        NameOf(to.type), to.shape.ToString());
}

}  // namespace

void CopyBytesCpu(const void* src, void* dst, int64_t bytes) {
  const char* s = static_cast<const char*>(src);
  char* d = static_cast<char*>(dst);
  if (bytes <= 0 || s == d) return;
  if (s < d + bytes && d < s + bytes) {
    std::memmove(d, s, static_cast<size_t>(bytes));
    return;
  }
  ParallelFor(bytes, 4 * kGrainBytes, [=](int64_t begin, int64_t end) {
    std::memcpy(d + begin, s + begin, static_cast<size_t>(end - begin));
  });
}

void ReorderCpu(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  if (from.shape != to.shape) Refuse(from, to);
  if (from.type == to.type && (from.layout == to.layout || to.shape.ndim() == 0))
    return CopyBytesCpu(src, dst, to.Bytes());
  if (from.type == to.type) return MoveElements(from, src, to, dst);
  if (from.type == DType::kFloat32 && to.type == DType::kBfloat16)
    return ReorderAs<float, bfloat16>(from, src, to, dst);
  if (from.type == DType::kFloat32 && to.type == DType::kFloat16)
    return ReorderAs<float, float16>(from, src, to, dst);
  if (from.type == DType::kBfloat16 && to.type == DType::kFloat32)
    return ReorderAs<bfloat16, float>(from, src, to, dst);
  if (from.type == DType::kFloat16 && to.type == DType::kFloat32)
    return ReorderAs<float16, float>(from, src, to, dst);
  Refuse(from, to);
}

}  // namespace mxtrain
