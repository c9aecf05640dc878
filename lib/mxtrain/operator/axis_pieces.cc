// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/axis_pieces.h"

#include <algorithm>
#include <cstring>

#include "mxtrain/device/blocked_layout.h"

namespace mxtrain {
namespace {

// Copies or adds `rows` rows of `run` elements with strides `from_stride` and `to_stride`.
void CopyRows(OpReqType req, DType type, const void* from, int64_t from_stride, void* to,
              int64_t to_stride, int64_t rows, int64_t run) {
  if (run == 0) return;
  SwitchType(type, "a copy along an axis", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = AccumulatorOf<T>;
    const T* source = static_cast<const T*>(from);
    T* target = static_cast<T*>(to);
    SwitchReq(req, [&](auto accumulate) {
      ParallelFor(rows, std::max<int64_t>(1, kParallelGrain / run),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) {
                      const T* x = source + r * from_stride;
                      T* y = target + r * to_stride;
                      if constexpr (accumulate()) {
                        for (int64_t i = 0; i < run; ++i)
                          y[i] = static_cast<T>(Plus(A(y[i]), A(x[i])));
                      } else {
                        std::memcpy(static_cast<void*>(y), x, static_cast<size_t>(run) * sizeof(T));
                      }
                    }
                  });
    });
  });
}

}  // namespace

void CopyFromWhole(const OnCpu&, OpReqType req, const TBlob& whole, const AxisView& view,
                   int64_t begin, int64_t length, const TBlob& piece) {
  const char* from = whole.dptr<char>() + begin * view.inner * SizeOf(whole.type);
  CopyRows(req, piece.type, from, view.length * view.inner, piece.data, length * view.inner,
           view.outer, length * view.inner);
}

void CopyToWhole(const OnCpu&, OpReqType req, const TBlob& piece, const AxisView& view,
                 int64_t begin, int64_t length, const TBlob& whole) {
  char* to = whole.dptr<char>() + begin * view.inner * SizeOf(whole.type);
  CopyRows(req, whole.type, piece.data, length * view.inner, to, view.length * view.inner,
           view.outer, length * view.inner);
}

bool CutsWhole(Layout layout, const TShape& whole, int axis, std::span<const TShape> pieces) {
  if (layout.plain()) return true;
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked || blocked->ndim() != whole.ndim() || layout.Padded(whole)) return false;
  const bool columns = axis == 1 && ChannelsLast(layout);
  for (int i = 0; i <= axis && !columns; ++i) {
    if (blocked->order()[static_cast<size_t>(i)] != i || (i < axis && blocked->BlockOf(i) > 1))
      return false;
  }
  return std::all_of(pieces.begin(), pieces.end(), [&](const TShape& piece) {
    return piece.ndim() == whole.ndim() && !layout.Padded(piece);
  });
}

Layout CommonLayout(std::span<const std::optional<Layout>> offered, const TShape& whole, int axis,
                    std::span<const TShape> pieces) {
  for (const std::optional<Layout>& layout : offered) {
    if (layout && !layout->plain() && CutsWhole(*layout, whole, axis, pieces)) return *layout;
  }
  return {};
}

}  // namespace mxtrain
