// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/transpose/transpose.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "mxtrain/operator/axes.h"

namespace mxtrain {

template <typename P>
bool PermutingProperty<P>::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape &data = (*in)[0], &permuted = (*out)[0];
  if (!data.has_rank()) {
    if (!permuted.has_rank()) return false;
    data = TShape::OfRank(permuted.ndim());
  }
  const std::vector<int> order = OrderOf(data);
  TShape shape = data;
  for (int i = 0; i < data.ndim(); ++i) shape[i] = data[order[static_cast<size_t>(i)]];
  UnifyShape(shape, &permuted, this->TypeString(), "output");
  for (int i = 0; i < data.ndim(); ++i) data[order[static_cast<size_t>(i)]] = permuted[i];
  return data.known();
}

template <typename P>
MoveList PermutingProperty<P>::MovesOf(std::span<const TensorSpec> in,
                                       std::span<const TensorSpec> out) const {
  const StridedView data = StridedView::Whole(in[0].shape);
  StridedView permuted;
  for (const int axis : OrderOf(in[0].shape)) permuted.Add(data.dim[axis], data.stride[axis]);
  MoveList list;
  list.Add(0, permuted, 0, StridedView::Whole(out[0].shape));
  return list;
}

std::vector<int> TransposeProperty::OrderOf(const TShape& data) const {
  const TShape& axes = param_.axes;
  std::vector<int> order;
  if (axes.ndim() == 0) {
    for (int i = data.ndim(); i-- > 0;) order.push_back(i);
    return order;
  }
  const auto check = [&](bool valid) {
    if (valid) return;
    Throw(ErrorKind::kConfig, "transpose: axes = {} must contain each axis of shape {} once",
          axes.ToTuple(), data.ToString());
  };
  check(axes.ndim() == data.ndim());
  for (const int64_t given : axes) {
    const int axis = CheckAxis(given, data, "transpose");
    check(std::find(order.begin(), order.end(), axis) == order.end());
    order.push_back(axis);
  }
  return order;
}

bool TransposeProperty::IsIdentity() const {
  for (int i = 0; i < param_.axes.ndim(); ++i) {
    if (param_.axes[i] != i) return false;
  }
  return param_.axes.ndim() > 0;
}

std::vector<int> SwapAxisProperty::OrderOf(const TShape& data) const {
  std::vector<int> order(static_cast<size_t>(data.ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(CheckAxis(param_.dim1, data, "SwapAxis"))],
            order[static_cast<size_t>(CheckAxis(param_.dim2, data, "SwapAxis"))]);
  return order;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(transpose, registry) {
  registry.AddProperty("transpose", {},
                       [] { return std::make_unique<mxtrain::TransposeProperty>(); });
  registry.AddProperty("SwapAxis", {"swapaxes"},
                       [] { return std::make_unique<mxtrain::SwapAxisProperty>(); });
}
