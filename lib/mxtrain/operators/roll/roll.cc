// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/roll/roll.h"

#include "mxtrain/operator/axes.h"

namespace mxtrain {

void RollProperty::Check() {
  const int axes = param_.axis ? param_.axis->ndim() : 1;
  if (param_.shift.ndim() == axes || param_.shift.ndim() == 1) return;
  Throw(ErrorKind::kConfig, "roll: shift = {} must have {}", param_.shift.ToTuple(),
        param_.axis ? format("one entry, or one for each of axis = {}", param_.axis->ToTuple())
                    : "one entry, since there is no axis");
}

std::vector<int64_t> RollProperty::ShiftsOf(const TShape& data) const {
  std::vector<int64_t> shifts(static_cast<size_t>(data.ndim()));
  for (int i = 0; i < param_.axis->ndim(); ++i) {
    const int axis = CheckAxis((*param_.axis)[i], data, "roll");
    const int64_t length = data[axis];
    if (length == 0) continue;
    int64_t& shift = shifts[static_cast<size_t>(axis)];
    const int64_t asked = param_.shift[param_.shift.ndim() == 1 ? 0 : i];
    shift = (shift + asked % length + length) % length;
  }
  return shifts;
}

TShape RollProperty::OutShape(const std::vector<TShape>& in) const {
  if (param_.axis) ShiftsOf(in[0]);  // throws for axes that are out of range
  return in[0];
}

MoveList RollProperty::MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec>) const {
  TShape shape = in[0].shape;
  std::vector<int64_t> shifts;
  if (param_.axis) {
    shifts = ShiftsOf(shape);
  } else {
    shape = TShape{shape.Size()};
    shifts = {shape[0] > 0 ? (param_.shift[0] % shape[0] + shape[0]) % shape[0] : 0};
  }
  // Along a rolled axis the first length - shift indices move up and the others to the beginning.
  struct Part {
    StridedView from, to;
  };
  std::vector<Part> parts = {{StridedView::Whole(shape), StridedView::Whole(shape)}};
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const int64_t shift = shifts[static_cast<size_t>(axis)], rest = shape[axis] - shift;
    if (shift == 0) continue;
    std::vector<Part> halves;
    for (const Part& part : parts) {
      halves.push_back({StridedView(part.from).Take(axis, 0, rest),
                        StridedView(part.to).Take(axis, shift, rest)});
      halves.push_back({StridedView(part.from).Take(axis, rest, shift),
                        StridedView(part.to).Take(axis, 0, shift)});
    }
    parts = std::move(halves);
  }
  MoveList list;
  for (const Part& part : parts) list.Add(0, part.from, 0, part.to);
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(roll, registry) {
  registry.AddProperty("roll", {"_npi_roll"},
                       [] { return std::make_unique<mxtrain::RollProperty>(); });
}
