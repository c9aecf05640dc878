// SPDX-License-Identifier: Apache-2.0
#pragma once
// scale times the data: an OperatorProperty whose operator computes on both devices, for
// mx_scale.cc and .cu alike.
#include "mxtrain/operator/mxnet_names.h"

namespace mxtrain::mxnet::op {

struct MxScaleParam : public Parameter<MxScaleParam> {
  float scale;
  static void Declare(Fields<MxScaleParam>& f) {
    f.Add("scale", &MxScaleParam::scale).Default(1).Help("factor");
  }
};

namespace mshadow_op {
struct mx_times {
  template <typename V>
  MSHADOW_XINLINE static V Map(V a, V b) {
    return a * b;
  }
};
}  // namespace mshadow_op

template <typename xpu>
class MxScaleOp : public Operator {
 public:
  explicit MxScaleOp(const MxScaleParam& param) : param_(param) {}
  void Forward(const OpContext& ctx, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>&) override {
    Scale(ctx, in_data[0], req[0], out_data[0]);
  }
  void Backward(const OpContext& ctx, const std::vector<TBlob>& out_grad, const std::vector<TBlob>&,
                const std::vector<TBlob>&, const std::vector<OpReqType>& req,
                const std::vector<TBlob>& in_grad, const std::vector<TBlob>&) override {
    Scale(ctx, out_grad[0], req[0], in_grad[0]);
  }

 private:
  void Scale(const OpContext& ctx, const TBlob& from, OpReqType req, const TBlob& to) {
    using namespace mshadow;
    using namespace mshadow::expr;
    RunContext run_ctx = ctx.run_ctx;
    mshadow::Stream<xpu>* s = run_ctx.get_stream<xpu>();
    MSHADOW_REAL_TYPE_SWITCH(to.type_flag_, DType, {
      mshadow::Tensor<xpu, 2, DType> x = from.get<xpu, 2, DType>(s);
      mshadow::Tensor<xpu, 2, DType> y = to.get<xpu, 2, DType>(s);
      ASSIGN_DISPATCH(y, req, F<mshadow_op::mx_times>(x, ScalarExp<DType>(param_.scale)));
    });
  }
  const MxScaleParam param_;
};

template <typename xpu>
class MxScaleProp : public OperatorProperty {
 public:
  std::string TypeString() const override { return "mx_scale"; }
  void Init(const std::vector<std::pair<std::string, std::string>>& kwargs) override {
    param_.Init(kwargs, TypeString());
  }
  std::map<std::string, std::string> GetParams() const override {
    const auto params = param_.ToKwargs();
    return {params.begin(), params.end()};
  }
  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>*) const override {
    out_shape->assign(1, (*in_shape)[0]);
    return (*in_shape)[0].known();
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }
  Operator* CreateOperator(Context) const override { return new MxScaleOp<xpu>(param_); }

 private:
  MxScaleParam param_;
};

}  // namespace mxtrain::mxnet::op
