// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dot/dot.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain::dot {
namespace {

MatrixView LeftView(const TShape& shape, bool transpose) {
  const int n = shape.ndim();
  if (transpose)
    return MatrixView{shape[0], shape.Product(1, n), shape.Product(1, n), 1}.Transposed();
  return {shape.Product(0, n - 1), shape[n - 1], shape[n - 1], 1};
}

MatrixView RightView(const TShape& shape, bool transpose) {
  const int n = shape.ndim();
  if (transpose)
    return MatrixView{shape.Product(0, n - 1), shape[n - 1], shape[n - 1], 1}.Transposed();
  return {shape[0], shape.Product(1, n), shape.Product(1, n), 1};
}

}  // namespace

ProductViews DotProperty::Views(const TShape& lhs, const TShape& rhs) const {
  const MatrixView a = LeftView(lhs, param_.transpose_a), b = RightView(rhs, param_.transpose_b);
  return {a, b, {a.rows, b.columns, b.columns, 1}};
}

bool DotProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                             std::vector<TShape>*) const {
  const TShape &a = (*in)[0], &b = (*in)[1];
  if (!a.known() || !b.known()) return false;
  if (a.ndim() < 1 || b.ndim() < 1)
    Throw(ErrorKind::kConfig, "dot: lhs {} and rhs {} need an axis to sum over", a.ToString(),
          b.ToString());
  const int summed_a = param_.transpose_a ? 0 : a.ndim() - 1,
            summed_b = param_.transpose_b ? b.ndim() - 1 : 0;
  if (a[summed_a] != b[summed_b]) {
    Throw(ErrorKind::kConfig,
          "dot: axis {} of lhs {} and axis {} of rhs {} must have equal lengths", summed_a,
          a.ToString(), summed_b, b.ToString());
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < a.ndim(); ++i) {
    if (i != summed_a) dims.push_back(a[i]);
  }
  for (int i = 0; i < b.ndim(); ++i) {
    if (i != summed_b) dims.push_back(b[i]);
  }
  if (dims.empty()) dims.push_back(1);
  UnifyShape(TShape(dims), &(*out)[0], "dot", "output");
  return true;
}

double DotProperty::ForwardFlops(const std::vector<TShape>& in,
                                 const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) *
         static_cast<double>(LeftView(in[0], param_.transpose_a).columns);
}

MXTRAIN_OPERATOR(dot, registry) {
  registry.AddProperty("dot", {}, [] { return std::make_unique<DotProperty>(); });
}

}  // namespace mxtrain::dot
