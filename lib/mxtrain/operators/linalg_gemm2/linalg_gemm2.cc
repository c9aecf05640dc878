// SPDX-License-Identifier: Apache-2.0
// linalg_gemm2: alpha op(A) op(B), matrices in the last two axes, or in `axis` and the last one;
// the axes before are a batch. op transposes or not.
#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

struct Gemm2Param : Parameter<Gemm2Param> {
  bool transpose_a, transpose_b;
  double alpha;
  int axis;
  static void Declare(Fields<Gemm2Param>& f) {
    f.Add("transpose_a", &Gemm2Param::transpose_a).Default(false).Help("transpose A");
    f.Add("transpose_b", &Gemm2Param::transpose_b).Default(false).Help("transpose B");
    f.Add("alpha", &Gemm2Param::alpha).Default(1.0).Help("factor of the product");
    f.Add("axis", &Gemm2Param::axis).Default(-2).Range(-2, -2).Help("axis of matrix rows; only -2");
  }
};

void CompleteLinalgGemm2(const Gemm2Param&, std::vector<TShape>* in) {
  const TShape &a = (*in)[0], &b = (*in)[1];
  if (!a.known() || !b.known()) return;
  bool agree = a.ndim() == b.ndim() && a.ndim() >= 2;
  for (int i = 0; agree && i < a.ndim() - 2; ++i) agree = a[i] == b[i];
  if (!agree) {
    Throw(ErrorKind::kConfig,
          "linalg_gemm2: A {} and B {} must have the same axes before the last two", a.ToString(),
          b.ToString());
  }
}

void LowerLinalgGemm2(const Gemm2Param& param, Lowering& g) {
  const TShape &a = g.shape(0), &b = g.shape(1);
  const int last = a.ndim() - 1;
  const auto matrices = [&](int argument, const TShape& shape) {
    const TShape flat{shape.Product(0, last - 1), shape[last - 1], shape[last]};
    return g.Reshape(g.argument(argument), flat);
  };
  auto product = g("batch_dot", {matrices(0, a), matrices(1, b)},
                   {{"transpose_a", params::Print(param.transpose_a)},
                    {"transpose_b", params::Print(param.transpose_b)}});
  if (param.alpha != 1) product = g.WithScalar("_mul_scalar", product, param.alpha);
  TShape out = a;
  out[last - 1] = param.transpose_a ? a[last] : a[last - 1];
  out[last] = param.transpose_b ? b[last - 1] : b[last];
  g.SetOutput(0, g.Reshape(product, out));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(linalg_gemm2, registry) {
  using namespace mxtrain;
  AddComposite<Gemm2Param>(registry,
                           {.name = "linalg_gemm2",
                            .description = "the product of two matrices, or of two batches of them",
                            .aliases = {"_linalg_gemm2"},
                            .arguments = {"A", "B"},
                            .complete = CompleteLinalgGemm2,
                            .lower = LowerLinalgGemm2});
}
