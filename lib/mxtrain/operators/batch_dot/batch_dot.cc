// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/batch_dot/batch_dot.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain::dot {
namespace {

MatrixView BatchView(const TShape& shape, bool transpose) {
  const int n = shape.ndim();
  const int64_t rows = shape[n - 2], columns = shape[n - 1];
  const MatrixView view{rows, columns, columns, 1, shape.Product(0, n - 2), rows * columns};
  return transpose ? view.Transposed() : view;
}

}  // namespace

ProductViews BatchDotProperty::Views(const TShape& lhs, const TShape& rhs) const {
  const MatrixView a = BatchView(lhs, param_.transpose_a), b = BatchView(rhs, param_.transpose_b);
  return {a, b, {a.rows, b.columns, b.columns, 1, a.batch, a.rows * b.columns}};
}

bool BatchDotProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                  std::vector<TShape>*) const {
  const TShape &a = (*in)[0], &b = (*in)[1];
  if (!a.known() || !b.known()) return false;
  const auto fail = [&](const char* what) {
    Throw(ErrorKind::kConfig, "batch_dot: lhs {} and rhs {} must {}", a.ToString(), b.ToString(),
          what);
  };
  const int n = a.ndim();
  if (n < 3 || b.ndim() != n) fail("have the same number of axes, three or more");
  for (int i = 0; i < n - 2; ++i) {
    if (a[i] != b[i]) fail("match in all axes except the last two");
  }
  const MatrixView left = BatchView(a, param_.transpose_a),
                   right = BatchView(b, param_.transpose_b);
  if (left.columns != right.rows) fail("have summed axes of equal length");
  TShape result = a;
  result[n - 2] = left.rows;
  result[n - 1] = right.columns;
  UnifyShape(result, &(*out)[0], TypeString(), "output");
  return true;
}

double BatchDotProperty::ForwardFlops(const std::vector<TShape>& in,
                                      const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) *
         static_cast<double>(BatchView(in[0], param_.transpose_a).columns);
}

MXTRAIN_OPERATOR(batch_dot, registry) {
  registry.AddProperty("batch_dot", {}, [] { return std::make_unique<BatchDotProperty>(); });
}

}  // namespace mxtrain::dot
