// SPDX-License-Identifier: Apache-2.0
#pragma once
// IdentityAttachKLSparseReg, written once for all devices.
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/identity_attach_kl_sparse_reg/identity_attach_kl_sparse_reg.h"

namespace mxtrain::kl_sparse {

// The moving average of a unit, then the gradient of its activations.
template <typename T>
struct UnitColumn {
  using A = AccumulatorOf<T>;
  int64_t batch, units;
  double target, penalty, momentum;
  const T *y, *head;
  A* average;
  T* dx;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t unit) const {
    double sum = 0;
    for (int64_t n = team.rank(); n < batch; n += team.size())
      sum += static_cast<double>(y[n * units + unit]);
    sum = team.Fold(sum, AddBoth{});
    const double mean = batch > 0 ? sum / static_cast<double>(batch) : 0;
    const double rho = momentum * static_cast<double>(average[unit]) + (1 - momentum) * mean;
    const A added = static_cast<A>(penalty * (-target / rho + (1 - target) / (1 - rho)));
    team.Fold(0.0, AddBoth{});  // all members have read the average
    if (team.rank() == 0) average[unit] = static_cast<A>(rho);
    if (req == OpReqType::kNullOp) return;
    for (int64_t n = team.rank(); n < batch; n += team.size()) {
      const int64_t i = n * units + unit;
      Assign(req, dx, i, static_cast<A>(head[i]) + added);
    }
  }
};

template <typename Device>
class KlSparse final : public Operator {
 public:
  explicit KlSparse(const KlSparseParam& param) : param_(param) {}
  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob& y = args.out_data[0];
    SwitchFloating(y.type, "IdentityAttachKLSparseReg", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForColumns(Device{args.ctx.run_ctx}, y.shape[1], y.shape[0],
                 UnitColumn<T>{y.shape[0], y.shape[1], param_.sparseness_target, param_.penalty,
                               param_.momentum, y.dptr<T>(), args.out_grad[0].dptr<T>(),
                               args.aux_states[0].dptr<AccumulatorOf<T>>(),
                               args.in_grad[0].dptr<T>(), args.req[0]});
    });
  }

 private:
  KlSparseParam param_;
};

}  // namespace mxtrain::kl_sparse

MXTRAIN_KERNELS(identity_attach_kl_sparse_reg, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(ReferenceKernel<KlSparseProperty, kl_sparse::KlSparse<Device>, Device>(
      "IdentityAttachKLSparseReg"));
}
