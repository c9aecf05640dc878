// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/diag/diag.h"

#include <cstdlib>

#include "mxtrain/operator/axes.h"

namespace mxtrain {
namespace {

// The diagonals of an array: axes of rows and columns, the first element, and how many there are.
struct Diagonals {
  int row_axis, column_axis;
  int64_t row, column, length;
};
Diagonals DiagonalsOf(const TShape& data, const DiagParam& param) {
  const int a = CheckAxis(param.axis1, data, "diag"), b = CheckAxis(param.axis2, data, "diag");
  if (a == b) {
    Throw(ErrorKind::kConfig, "diag: axis1 = {} and axis2 = {} are the same axis of shape {}",
          param.axis1, param.axis2, data.ToString());
  }
  const int64_t row = std::max<int64_t>(0, -param.k), column = std::max<int64_t>(0, param.k);
  const int64_t length = std::min(data[a] - row, data[b] - column);
  if (length <= 0) {
    Throw(ErrorKind::kConfig, "diag: k = {} is outside of matrices of {} rows and {} columns",
          param.k, data[a], data[b]);
  }
  return {a, b, row, column, length};
}

}  // namespace

TShape DiagProperty::OutShape(const std::vector<TShape>& in) const {
  const TShape& data = in[0];
  if (data.ndim() == 0) Throw(ErrorKind::kConfig, "diag: the data have no axis");
  if (data.ndim() == 1) {
    const int64_t side = data[0] + std::abs(param_.k);
    const TShape square{side, side};
    square.Size();  // throws if that is too large
    return square;
  }
  const Diagonals diagonals = DiagonalsOf(data, param_);
  std::vector<int64_t> lengths;
  for (int i = 0; i < data.ndim(); ++i) {
    if (i != diagonals.row_axis && i != diagonals.column_axis) lengths.push_back(data[i]);
  }
  lengths.push_back(diagonals.length);
  return TShape(lengths);
}

MoveList DiagProperty::MovesOf(std::span<const TensorSpec> in,
                               std::span<const TensorSpec> out) const {
  const TShape &data = in[0].shape, &result = out[0].shape;
  MoveList list;
  if (data.ndim() > 1) {
    const Diagonals diagonals = DiagonalsOf(data, param_);
    const StridedView whole = StridedView::Whole(data);
    StridedView from;
    from.offset = diagonals.row * whole.stride[diagonals.row_axis] +
                  diagonals.column * whole.stride[diagonals.column_axis];
    for (int i = 0; i < data.ndim(); ++i) {
      if (i != diagonals.row_axis && i != diagonals.column_axis) from.Add(data[i], whole.stride[i]);
    }
    from.Add(diagonals.length,
             whole.stride[diagonals.row_axis] + whole.stride[diagonals.column_axis]);
    list.Add(0, from, 0, StridedView::Whole(result));
    return list;
  }
  // Diagonal elements are side + 1 apart. Between two of them are `side` others.
  const int64_t n = data[0], side = result[0], size = side * side;
  const int64_t first = param_.k >= 0 ? param_.k : -param_.k * side;
  const auto fill = [&list](int64_t begin, int64_t runs, int64_t step, int64_t length) {
    StridedView view;
    view.offset = begin;
    view.Add(runs, step);
    view.Add(length, 1);
    list.Fill(0, view);
  };
  if (n == 0) {
    fill(0, 1, size, size);
    return list;
  }
  StridedView diagonal;
  diagonal.offset = first;
  diagonal.Add(n, side + 1);
  list.Add(0, StridedView::Whole(data), 0, diagonal);
  const int64_t after = first + (n - 1) * (side + 1) + 1;
  fill(0, 1, size, first);
  fill(first + 1, n - 1, side + 1, side);
  fill(after, 1, size, size - after);
  return list;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(diag, registry) {
  registry.AddProperty("diag", {}, [] { return std::make_unique<mxtrain::DiagProperty>(); });
}
