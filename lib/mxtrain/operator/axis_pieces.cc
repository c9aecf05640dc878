// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/axis_pieces.h"

#include <algorithm>

namespace mxtrain {

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
