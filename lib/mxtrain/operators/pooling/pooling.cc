// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pooling/pooling.h"

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"

namespace mxtrain {

void PoolingParam::Declare(Fields<PoolingParam>& f) {
  using P = PoolingParam;
  const TShape empty = TShape::OfRank(0);
  f.Add("kernel", &P::kernel).Default(empty).Help("window, (h, w); required unless global_pool");
  f.Add("pool_type", &P::pool_type)
      .Enum({{"max", kMax}, {"avg", kAvg}, {"sum", kSum}, {"lp", kLp}})
      .Default(kMax)
      .Help("what to compute over a window");
  f.Add("global_pool", &P::global_pool)
      .Default(false)
      .Help("one window over the whole image; kernel, stride and pad are ignored");
  f.Add("pooling_convention", &P::pooling_convention)
      .Enum({{"valid", kValid}, {"full", kFull}})
      .Default(kValid)
      .Help("rounding of the output size: down or up (files of MXNet before 0.8 mean full)");
  f.Add("stride", &P::stride).Default(empty).Help("stride of the window, (h, w); 1 by default");
  f.Add("pad", &P::pad)
      .Default(empty)
      .Help("padding on either side, (h, w); 0 by default; never the maximum");
  f.Add("p_value", &P::p_value).Default(std::nullopt).Range(1, 3).Help("p of lp");
  f.Add("count_include_pad", &P::count_include_pad)
      .Default(std::nullopt)
      .Help("avg: whether padding counts in the divisor; true by default");
  f.Add("layout", &P::layout)
      .Enum({{"NCW", 0}, {"NCHW", 1}, {"NCDHW", 2}, {"NHWC", 3}})
      .Default(std::nullopt)
      .Help("order of the axes; NCHW is supported");
  f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
}

void PoolingProperty::Check() {
  const std::string who = TypeString();
  if (param_.layout && *param_.layout != 1)
    Throw(ErrorKind::kConfig, "{}: layout must be NCHW; the kernels choose the memory layout", who);
  if (param_.pool_type == PoolingParam::kLp && !param_.p_value)
    Throw(ErrorKind::kConfig, "{}: pool_type = lp needs p_value (1, 2 or 3)", who);
  if (param_.global_pool) return;
  if (param_.kernel.ndim() != 2) {
    Throw(ErrorKind::kConfig,
          "{}: kernel = {} must be (h, w); only 2-D pooling is supported; use global_pool for the "
          "whole image",
          who, param_.kernel.ToTuple());
  }
  param_.kernel = WindowParam(param_.kernel, 2, 1, 1, who, "kernel");
  param_.stride = WindowParam(param_.stride, 2, 1, 1, who, "stride");
  param_.pad = WindowParam(param_.pad, 2, 0, 0, who, "pad");
  for (int i = 0; i < 2; ++i) {
    if (param_.pad[i] >= param_.kernel[i]) {
      Throw(ErrorKind::kConfig, "{}: pad = {} must be smaller than kernel = {}", who,
            param_.pad.ToTuple(), param_.kernel.ToTuple());
    }
  }
}

PoolingAxis AxisOf(const PoolingParam& param, const TShape& data, const TShape& output, int axis) {
  const int64_t in = data[2 + axis], out = output[2 + axis];
  if (param.global_pool) return {in, out, in, 1, 0};
  return {in, out, param.kernel[axis], param.stride[axis], param.pad[axis]};
}

int64_t PoolingDivisor(const PoolingParam& param, const PoolingAxis& h, const PoolingAxis& w,
                       int64_t y, int64_t x) {
  if (param.pool_type == PoolingParam::kSum) return 1;
  return PoolingCells(param.count_include_pad.value_or(true), h, w, y, x);
}

bool PoolingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape &data = (*in)[0], &output = (*out)[0];
  if (data.has_rank() && data.ndim() != 4) {
    Throw(ErrorKind::kConfig, "{}: data {} must be images [N, C, H, W]", TypeString(),
          data.ToString());
  }
  UnifyShape(TShape::OfRank(4), &data, TypeString(), "data");
  TShape expected = data;
  for (int i = 2; i < 4; ++i) {
    if (param_.global_pool) {
      expected[i] = 1;
    } else if (data[i] >= 0) {
      const int64_t padded = data[i] + 2 * param_.pad[i - 2], kernel = param_.kernel[i - 2],
                    stride = param_.stride[i - 2];
      if (kernel > padded) {
        Throw(ErrorKind::kConfig,
              "{}: kernel {} exceeds the padded data {} ({} cells) along axis {}", TypeString(),
              param_.kernel.ToTuple(), data.ToString(), padded, i);
      }
      const bool up = param_.pooling_convention == PoolingParam::kFull;
      expected[i] = (padded - kernel + (up ? stride - 1 : 0)) / stride + 1;
    }
  }
  UnifyShape(expected, &output, TypeString(), "output");
  data[0] = output[0];
  data[1] = output[1];
  return data.known() && output.known();
}

std::vector<int> PoolingProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  switch (param_.pool_type) {
    case PoolingParam::kMax:
      return {out_grad[0], in_data[0]};
    case PoolingParam::kLp:
      return {out_grad[0], in_data[0], out_data[0]};
    default:
      return {out_grad[0]};
  }
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(pooling, registry) {
  registry.AddProperty("Pooling", {}, [] { return std::make_unique<mxtrain::PoolingProperty>(); });
}
