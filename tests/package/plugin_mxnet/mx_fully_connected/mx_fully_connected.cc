// SPDX-License-Identifier: Apache-2.0
// FullyConnected as MXNet writes an operator: out = data weight^T + bias, data seen as
// [N, inputs], weight [num_hidden, inputs], bias [num_hidden].
#include "mxtrain/operator/mxnet_operator.h"

namespace mxtrain::mxnet::op {

namespace fullc {
enum FullyConnectedOpInputs { kData, kWeight, kBias };
enum FullyConnectedOpOutputs { kOut };
}  // namespace fullc

struct FullyConnectedParam : public Parameter<FullyConnectedParam> {
  uint32_t num_hidden;
  bool no_bias;
  static void Declare(Fields<FullyConnectedParam>& f) {
    f.Add("num_hidden", &FullyConnectedParam::num_hidden)
        .Required()
        .Range(1)
        .Help("Number of hidden nodes of the output.");
    f.Add("no_bias", &FullyConnectedParam::no_bias)
        .Default(false)
        .Help("Whether to disable bias parameter.");
  }
};

template <typename xpu>
class FullyConnectedOp : public Operator {
 public:
  explicit FullyConnectedOp(FullyConnectedParam p) : param_(p) {}

  void Forward(const OpContext&, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>&) override {
    if (req[fullc::kOut] == kNullOp) return;
    MXTRAIN_REAL_TYPE_SWITCH(out_data[fullc::kOut].type, Real, {
      using Sum = AccumulatorOf<Real>;
      const int64_t hidden = param_.num_hidden, inputs = in_data[fullc::kWeight].shape[1];
      const Real* data = in_data[fullc::kData].dptr<Real>();
      const Real* weight = in_data[fullc::kWeight].dptr<Real>();
      const Real* bias = param_.no_bias ? nullptr : in_data[fullc::kBias].dptr<Real>();
      Assign(FlatTo1D<Real>(out_data[fullc::kOut]), req[fullc::kOut], [=](int64_t i) {
        const Real* row = data + i / hidden * inputs;
        const Real* column = weight + i % hidden * inputs;
        Sum sum = bias ? Sum(bias[i % hidden]) : Sum(0);
        for (int64_t k = 0; k < inputs; ++k) sum += Sum(row[k]) * Sum(column[k]);
        return sum;
      });
    });
  }

  void Backward(const OpContext&, const std::vector<TBlob>& out_grad,
                const std::vector<TBlob>& in_data, const std::vector<TBlob>&,
                const std::vector<OpReqType>& req, const std::vector<TBlob>& in_grad,
                const std::vector<TBlob>&) override {
    MXTRAIN_REAL_TYPE_SWITCH(out_grad[fullc::kOut].type, Real, {
      using Sum = AccumulatorOf<Real>;
      const int64_t rows = out_grad[fullc::kOut].shape[0], hidden = param_.num_hidden,
                    inputs = in_data[fullc::kWeight].shape[1];
      const Real* grad = out_grad[fullc::kOut].dptr<Real>();
      const Real* data = in_data[fullc::kData].dptr<Real>();
      const Real* weight = in_data[fullc::kWeight].dptr<Real>();
      // data and weight: grad weight, grad^T data; bias: the sum of grad's rows.
      Assign(FlatTo1D<Real>(in_grad[fullc::kData]), req[fullc::kData], [=](int64_t i) {
        Sum sum = 0;
        for (int64_t h = 0; h < hidden; ++h)
          sum += Sum(grad[i / inputs * hidden + h]) * Sum(weight[h * inputs + i % inputs]);
        return sum;
      });
      Assign(FlatTo1D<Real>(in_grad[fullc::kWeight]), req[fullc::kWeight], [=](int64_t i) {
        Sum sum = 0;
        for (int64_t n = 0; n < rows; ++n)
          sum += Sum(grad[n * hidden + i / inputs]) * Sum(data[n * inputs + i % inputs]);
        return sum;
      });
      if (param_.no_bias) return;
      Assign(FlatTo1D<Real>(in_grad[fullc::kBias]), req[fullc::kBias], [=](int64_t h) {
        Sum sum = 0;
        for (int64_t n = 0; n < rows; ++n) sum += Sum(grad[n * hidden + h]);
        return sum;
      });
    });
  }

 private:
  FullyConnectedParam param_;
};

class FullyConnectedProp : public OperatorProperty {
 public:
  std::vector<std::string> ListArguments() const override {
    if (!param_.no_bias) return {"data", "weight", "bias"};
    return {"data", "weight"};
  }

  void Init(const std::vector<std::pair<std::string, std::string>>& kwargs) override {
    param_.Init(kwargs, TypeString());
  }

  std::map<std::string, std::string> GetParams() const override {
    const auto params = param_.ToKwargs();
    return {params.begin(), params.end()};
  }

  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>*) const override {
    const TShape& dshape = (*in_shape)[fullc::kData];
    if (!dshape.known()) return false;
    if (dshape.ndim() == 0) Throw(ErrorKind::kConfig, "{}: data has shape []", TypeString());
    const int64_t num_input = dshape.Product(1, dshape.ndim());
    const TShape output{dshape[0], param_.num_hidden};
    UnifyShape({param_.num_hidden, num_input}, &(*in_shape)[fullc::kWeight], TypeString(),
               "weight");
    if (!param_.no_bias)
      UnifyShape({param_.num_hidden}, &(*in_shape)[fullc::kBias], TypeString(), "bias");
    out_shape->clear();
    out_shape->push_back(output);
    return true;
  }

  OperatorProperty* Copy() const override { return new FullyConnectedProp(*this); }

  std::string TypeString() const override { return "mx_fully_connected"; }

  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[fullc::kOut], in_data[fullc::kData], in_data[fullc::kWeight]};
  }

  Operator* CreateOperator(Context) const override { return new FullyConnectedOp<cpu>(param_); }

 private:
  FullyConnectedParam param_;
};

}  // namespace mxtrain::mxnet::op

MXTRAIN_OPERATOR(mx_fully_connected, registry) {
  MXTRAIN_REGISTER_OP_PROPERTY(mx_fully_connected, mxtrain::mxnet::op::FullyConnectedProp)
      .describe("FullyConnected in MXNet's form")
      .add_arguments(mxtrain::mxnet::op::FullyConnectedParam::Describe());
}
