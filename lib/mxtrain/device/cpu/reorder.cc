#include "mxtrain/device/cpu/reorder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/device/cpu/tile_reorder.h"
#include "mxtrain/device/derived_layout.h"

namespace mxtrain {
namespace {

constexpr int64_t kGrainBytes = 1 << 16;  // what a thread of its own is worth

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

// Axes in order, with one inner block, on axis 0 or 1 ("aBcd8b"): seen as [outer, C/b, inner, b], a plain array as [outer, C, inner].
struct OneBlock {
  int64_t outer, length, inner, block;
};

std::optional<OneBlock> OneBlockOf(const TensorSpec& spec) {
  const BlockedLayout* layout = Blocked(spec);
  if (!layout || layout->blocks().size() != 1 || layout->blocks()[0].axis > 1) return std::nullopt;
  if (!std::is_sorted(layout->order().begin(), layout->order().end())) return std::nullopt;
  const auto [axis, block] = layout->blocks()[0];
  return OneBlock{spec.shape.Product(0, axis), spec.shape[axis], spec.shape.Product(axis + 1, spec.shape.ndim()), block};
}

// Between plain [outer, C, S] and blocked [outer, ceil(C/b), S, b]: a transposition of b x S for each pair (outer, block). `kB` is b where it
// is known when this is compiled, else 0.
template <typename T, int kB, bool kToBlocked>
void MoveBlocksOf(const OneBlock& form, const T* src, T* dst) {
  const int64_t b = kB ? kB : form.block;
  const int64_t length = form.length, inner = form.inner, blocks = (length + b - 1) / b;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, b * inner * static_cast<int64_t>(sizeof(T))));
  ParallelFor(form.outer * blocks, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks, first = i % blocks * b, valid = std::min(b, length - first);
      const int64_t plain_base = (n * length + first) * inner, blocked_base = i * inner * b;
      for (int64_t s = 0; s < inner; ++s) {
        if constexpr (kToBlocked) {
          const T* from = src + plain_base + s;
          T* to = dst + blocked_base + s * b;
          if (valid == b) {
            for (int64_t k = 0; k < b; ++k) to[k] = from[k * inner];
          } else {
            for (int64_t k = 0; k < b; ++k) to[k] = k < valid ? from[k * inner] : T{};
          }
        } else {
          const T* from = src + blocked_base + s * b;
          T* to = dst + plain_base + s;
          for (int64_t k = 0; k < valid; ++k) to[k * inner] = from[k];
        }
      }
    }
  });
}

template <typename T, bool kToBlocked>
void MoveBlocks(const OneBlock& form, const T* src, T* dst) {
  if (form.block == 8) return MoveBlocksOf<T, 8, kToBlocked>(form, src, dst);
  if (form.block == 16) return MoveBlocksOf<T, 16, kToBlocked>(form, src, dst);
  MoveBlocksOf<T, 0, kToBlocked>(form, src, dst);
}

// The axis along which `to` is written with the smallest steps.
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

// Any pair of layouts, by one offset table per axis: the inner axis in a loop, the others counted like an odometer.
template <typename T>
void MoveByTables(const TensorSpec& from, const T* src, const TensorSpec& to, T* dst) {
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
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (length * static_cast<int64_t>(sizeof(T))));
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
        std::copy_n(src + from_base, length, dst + to_base);
      } else {
        for (int64_t j = 0; j < length; ++j) dst[to_base + to_inner[j]] = src[from_base + from_inner[j]];
      }
    }
  });
}

void ZeroBytes(void* data, int64_t bytes) {
  ParallelFor(bytes, kGrainBytes,
              [data](int64_t begin, int64_t end) { std::memset(static_cast<char*>(data) + begin, 0, static_cast<size_t>(end - begin)); });
}

template <typename T>
void Reorder(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  const T* s = static_cast<const T*>(src);
  T* d = static_cast<T*>(dst);
  const std::optional<OneBlock> from_form = OneBlockOf(from), to_form = OneBlockOf(to);
  if (from.layout.plain() && to_form) return MoveBlocks<T, true>(*to_form, s, d);
  if (to.layout.plain() && from_form) return MoveBlocks<T, false>(*from_form, s, d);
  if (to.layout.Padded(to.shape)) ZeroBytes(dst, to.Bytes());
  MoveByTables<T>(from, s, to, d);
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
  ParallelFor(bytes, 4 * kGrainBytes,
              [=](int64_t begin, int64_t end) { std::memcpy(d + begin, s + begin, static_cast<size_t>(end - begin)); });
}

void ReorderCpu(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
  if (from.shape != to.shape || from.type != to.type) {
    Throw(ErrorKind::kBug, "a change of layout from {} {} to {} {}", NameOf(from.type), from.shape.ToString(), NameOf(to.type),
          to.shape.ToString());
  }
  if (from.layout == to.layout || to.shape.ndim() == 0) return CopyBytesCpu(src, dst, to.Bytes());
  if (const DerivedLayout* derived = Derived(to.layout)) return derived->Derive(from, src, dst);
  if (to.shape.Size() == 0 || ReorderTiles(from, src, to, dst)) return;
  switch (SizeOf(to.type)) {
    case 1:
      return Reorder<uint8_t>(from, src, to, dst);
    case 2:
      return Reorder<uint16_t>(from, src, to, dst);
    case 4:
      return Reorder<uint32_t>(from, src, to, dst);
    default:
      return Reorder<uint64_t>(from, src, to, dst);
  }
}

}  // namespace mxtrain
