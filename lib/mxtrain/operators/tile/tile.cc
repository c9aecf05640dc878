// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/tile/tile.h"

#include <algorithm>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_pieces.h"

namespace mxtrain {
namespace {

// The last `ndim` entries; 1 where there is none.
int64_t EntryOf(const TShape& shape, int axis, int ndim) {
  const int i = axis - (ndim - shape.ndim());
  return i < 0 ? 1 : shape[i];
}

// As [outer, length, inner] around the axis; without an axis every element is an index.
AxisView RepeatedAxis(const RepeatParam& param, const TShape& data) {
  if (param.axis) return AxisView(data, CheckAxis(*param.axis, data, "repeat"));
  AxisView flat;
  flat.outer = flat.inner = 1;
  flat.length = data.Size();
  return flat;
}

}  // namespace

void TileProperty::Check() {
  if (std::any_of(param_.reps.begin(), param_.reps.end(), [](int64_t n) { return n < 1; }))
    Throw(ErrorKind::kConfig, "tile: reps = {} must be at least 1 each", param_.reps.ToTuple());
}

bool TileProperty::IsIdentity() const {
  return std::all_of(param_.reps.begin(), param_.reps.end(), [](int64_t n) { return n == 1; });
}

TShape TileProperty::OutShape(const std::vector<TShape>& in) const {
  TShape tiled = TShape::OfRank(std::max(in[0].ndim(), param_.reps.ndim()));
  for (int i = 0; i < tiled.ndim(); ++i) {
    // Size() throws if the product is too large for an array.
    tiled[i] =
        TShape{EntryOf(in[0], i, tiled.ndim()), EntryOf(param_.reps, i, tiled.ndim())}.Size();
  }
  return tiled;
}

MoveList TileProperty::MovesOf(std::span<const TensorSpec> in,
                               std::span<const TensorSpec> out) const {
  const TShape &data = in[0].shape, &tiled = out[0].shape;
  StridedView from, to;
  for (int i = 0; i < tiled.ndim(); ++i) {
    const int64_t length = EntryOf(data, i, tiled.ndim());
    const int axis = i - (tiled.ndim() - data.ndim());
    from.Add(tiled[i] / std::max<int64_t>(1, length), 0);
    from.Add(length, axis < 0 ? 0 : data.Product(axis + 1, data.ndim()));
    to.Add(tiled[i] / std::max<int64_t>(1, length), length * tiled.Product(i + 1, tiled.ndim()));
    to.Add(length, tiled.Product(i + 1, tiled.ndim()));
  }
  MoveList list;
  list.Add(0, from, 0, to);
  return list;
}

TShape RepeatProperty::OutShape(const std::vector<TShape>& in) const {
  const AxisView view = RepeatedAxis(param_, in[0]);
  const int64_t length = TShape{view.length, param_.repeats}.Size();
  if (!param_.axis) return {length};
  TShape repeated = in[0];
  repeated[CheckAxis(*param_.axis, in[0], "repeat")] = length;
  return repeated;
}

MoveList RepeatProperty::MovesOf(std::span<const TensorSpec> in,
                                 std::span<const TensorSpec>) const {
  const AxisView view = RepeatedAxis(param_, in[0].shape);
  StridedView from;
  from.Add(view.outer, view.length * view.inner);
  from.Add(view.length, view.inner);
  from.Add(param_.repeats, 0);
  from.Add(view.inner, 1);
  MoveList list;
  list.Add(0, from, 0, from.Dense());
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(tile, registry) {
  registry.AddProperty("tile", {}, [] { return std::make_unique<mxtrain::TileProperty>(); });
  registry.AddProperty("repeat", {}, [] { return std::make_unique<mxtrain::RepeatProperty>(); });
}
