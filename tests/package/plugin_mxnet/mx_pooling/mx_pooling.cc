// SPDX-License-Identifier: Apache-2.0
// Pooling as MXNet writes an operator: the maximum or the mean over windows that slide over images
// [N, C, H, W]. Padding is never the maximum, and counts in the mean.
#include <algorithm>
#include <limits>

#include "mxtrain/operator/mxnet_operator.h"
#include "mxtrain/operator/window.h"

namespace mxtrain::mxnet::op {

namespace pool_enum {
enum PoolingOpInputs { kData };
enum PoolingOpOutputs { kOut };
enum PoolingOpType { kMaxPooling, kAvgPooling };
enum PoolingOpResource { kTempSpace };
}  // namespace pool_enum

struct PoolingParam : public Parameter<PoolingParam> {
  TShape kernel, stride, pad;
  int pool_type;
  static void Declare(Fields<PoolingParam>& f) {
    f.Add("kernel", &PoolingParam::kernel).Required().Help("pooling kernel size: (y, x)");
    f.Add("pool_type", &PoolingParam::pool_type)
        .Enum({{"max", pool_enum::kMaxPooling}, {"avg", pool_enum::kAvgPooling}})
        .Default(pool_enum::kMaxPooling)
        .Help("Pooling type to be applied.");
    f.Add("stride", &PoolingParam::stride)
        .Default(TShape::OfRank(0))
        .Help("stride for pooling: (y, x)");
    f.Add("pad", &PoolingParam::pad).Default(TShape::OfRank(0)).Help("pad for pooling: (y, x)");
  }
};

// The cells of window `i` of an axis that are in the image.
struct Window {
  Window(int64_t i, int64_t size, int64_t kernel, int64_t stride, int64_t pad)
      : begin(std::max<int64_t>(i * stride - pad, 0)),
        end(std::min(i * stride - pad + kernel, size)) {}
  int64_t begin, end;
};

template <typename xpu>
class PoolingOp : public Operator {
 public:
  explicit PoolingOp(PoolingParam p) : param_(p) {}

  void Forward(const OpContext&, const std::vector<TBlob>& in_data,
               const std::vector<OpReqType>& req, const std::vector<TBlob>& out_data,
               const std::vector<TBlob>&) override {
    const TShape ishape = in_data[pool_enum::kData].shape;
    const TShape oshape = out_data[pool_enum::kOut].shape;
    MXTRAIN_REAL_TYPE_SWITCH(out_data[pool_enum::kOut].type, Real, {
      using Sum = AccumulatorOf<Real>;
      const Real* data = in_data[pool_enum::kData].dptr<Real>();
      Assign(FlatTo1D<Real>(out_data[pool_enum::kOut]), req[pool_enum::kOut], [&, data](int64_t i) {
        const Real* plane = data + i / (oshape[2] * oshape[3]) * ishape[2] * ishape[3];
        const Window y = Rows(i / oshape[3] % oshape[2], ishape);
        const Window x = Columns(i % oshape[3], ishape);
        Sum best = -std::numeric_limits<Sum>::infinity(), sum = 0;
        for (int64_t r = y.begin; r < y.end; ++r) {
          for (int64_t c = x.begin; c < x.end; ++c) {
            const Sum cell = Sum(plane[r * ishape[3] + c]);
            best = std::max(best, cell);
            sum += cell;
          }
        }
        return IsMax() ? best : sum / static_cast<Sum>(KernelSize());
      });
    });
  }

  void Backward(const OpContext& ctx, const std::vector<TBlob>& out_grad,
                const std::vector<TBlob>& in_data, const std::vector<TBlob>& out_data,
                const std::vector<OpReqType>& req, const std::vector<TBlob>& in_grad,
                const std::vector<TBlob>&) override {
    if (req[pool_enum::kData] == kNullOp) return;
    const TShape ishape = in_grad[pool_enum::kData].shape;
    const TShape oshape = out_grad[pool_enum::kOut].shape;
    Stream<xpu>* s = get_stream<xpu>(ctx.run_ctx);
    MXTRAIN_REAL_TYPE_SWITCH(in_grad[pool_enum::kData].type, Real, {
      using Sum = AccumulatorOf<Real>;
      const auto space =
          ctx.requested[pool_enum::kTempSpace].template get_space_typed<Sum>(ishape, s);
      const std::span<Sum> sums = FlatTo1D<Sum>(space);
      Assign(sums, kWriteTo, 0);
      const Real* grad = out_grad[pool_enum::kOut].dptr<Real>();
      const Real* data = in_data[pool_enum::kData].dptr<Real>();
      const Real* out = out_data[pool_enum::kOut].dptr<Real>();
      const int64_t in_plane = ishape[2] * ishape[3], out_plane = oshape[2] * oshape[3];
      ParallelFor(ishape[0] * ishape[1], 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * out_plane; i < end * out_plane; ++i) {
          const int64_t plane = i / out_plane * in_plane;
          const Window y = Rows(i / oshape[3] % oshape[2], ishape);
          const Window x = Columns(i % oshape[3], ishape);
          bool found = false;  // the first of equal maxima gets the gradient
          for (int64_t r = y.begin; r < y.end; ++r) {
            for (int64_t c = x.begin; c < x.end; ++c) {
              const int64_t cell = plane + r * ishape[3] + c;
              Sum& sum = sums[static_cast<size_t>(cell)];
              if (!IsMax()) {
                sum += Sum(grad[i]) / static_cast<Sum>(KernelSize());
              } else if (!found && Sum(data[cell]) == Sum(out[i])) {
                sum += Sum(grad[i]);
                found = true;
              }
            }
          }
        }
      });
      Assign(FlatTo1D<Real>(in_grad[pool_enum::kData]), req[pool_enum::kData], sums);
    });
  }

 private:
  bool IsMax() const { return param_.pool_type == pool_enum::kMaxPooling; }
  int64_t KernelSize() const { return param_.kernel[0] * param_.kernel[1]; }
  Window Rows(int64_t i, const TShape& ishape) const {
    return {i, ishape[2], param_.kernel[0], param_.stride[0], param_.pad[0]};
  }
  Window Columns(int64_t i, const TShape& ishape) const {
    return {i, ishape[3], param_.kernel[1], param_.stride[1], param_.pad[1]};
  }

  PoolingParam param_;
};

class PoolingProp : public OperatorProperty {
 public:
  void Init(const std::vector<std::pair<std::string, std::string>>& kwargs) override {
    param_.Init(kwargs, TypeString());
    param_.kernel = WindowParam(param_.kernel, 2, 1, 1, TypeString(), "kernel");
    param_.stride = WindowParam(param_.stride, 2, 1, 1, TypeString(), "stride");
    param_.pad = WindowParam(param_.pad, 2, 0, 0, TypeString(), "pad");
    for (int i = 0; i < 2; ++i) {
      if (param_.pad[i] >= param_.kernel[i])
        Throw(ErrorKind::kConfig, "{}: pad = {} must be smaller than kernel = {}", TypeString(),
              param_.pad.ToTuple(), param_.kernel.ToTuple());
    }
  }

  std::map<std::string, std::string> GetParams() const override {
    const auto params = param_.ToKwargs();
    return {params.begin(), params.end()};
  }

  bool InferShape(std::vector<TShape>* in_shape, std::vector<TShape>* out_shape,
                  std::vector<TShape>*) const override {
    const TShape& dshape = (*in_shape)[pool_enum::kData];
    if (!dshape.known()) return false;
    if (dshape.ndim() != 4)
      Throw(ErrorKind::kConfig, "{}: data {} must be images [N, C, H, W]", TypeString(),
            dshape.ToString());
    TShape oshape = dshape;
    for (int i = 0; i < 2; ++i) {
      const int64_t padded = dshape[2 + i] + 2 * param_.pad[i];
      if (param_.kernel[i] > padded)
        Throw(ErrorKind::kConfig, "{}: kernel {} exceeds the padded data {}", TypeString(),
              param_.kernel.ToTuple(), dshape.ToString());
      oshape[2 + i] = (padded - param_.kernel[i]) / param_.stride[i] + 1;
    }
    out_shape->clear();
    out_shape->push_back(oshape);
    return true;
  }

  OperatorProperty* Copy() const override { return new PoolingProp(*this); }

  std::string TypeString() const override { return "mx_pooling"; }

  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[pool_enum::kOut], in_data[pool_enum::kData], out_data[pool_enum::kOut]};
  }

  // Sums of gradients, in the widest type in which they are accumulated.
  std::vector<ResourceRequest> BackwardResource(
      const std::vector<TShape>& in_shape) const override {
    const int64_t bytes = in_shape[pool_enum::kData].Size() * static_cast<int64_t>(sizeof(double));
    return {{ResourceRequest::kTempSpace, bytes}};
  }

  Operator* CreateOperator(Context) const override { return new PoolingOp<cpu>(param_); }

 private:
  PoolingParam param_;
};

}  // namespace mxtrain::mxnet::op

MXTRAIN_OPERATOR(mx_pooling, registry) {
  MXTRAIN_REGISTER_OP_PROPERTY(mx_pooling, mxtrain::mxnet::op::PoolingProp)
      .describe("Pooling in MXNet's form")
      .add_arguments(mxtrain::mxnet::op::PoolingParam::Describe());
}
