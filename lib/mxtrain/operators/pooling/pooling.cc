// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/pooling/pooling.h"

#include "mxtrain/operator/registry.h"
#include "mxtrain/operator/window.h"

namespace mxtrain {

void PoolingParam::Declare(Fields<PoolingParam>& f) {
  using P = PoolingParam;
  const TShape empty = TShape::OfRank(0);
  f.Add("kernel", &P::kernel)
      .Default(empty)
      .Help("window: (w), (h, w) or (d, h, w); required unless global_pool");
  f.Add("pool_type", &P::pool_type)
      .Enum({{"max", kMax}, {"avg", kAvg}, {"sum", kSum}, {"lp", kLp}})
      .Default(kMax)
      .Help("what to compute over a window");
  f.Add("global_pool", &P::global_pool)
      .Default(false)
      .Help("one window over the whole image; kernel, stride and pad are ignored");
  f.Add("pooling_convention", &P::pooling_convention)
      .Enum({{"valid", kValid}, {"full", kFull}, {"same", kSame}})
      .Default(kValid)
      .Help(
          "rounding of the output size: down or up (files of MXNet before 0.8 mean full); same: a "
          "window at every stride, for the maximum over sequences");
  f.Add("stride", &P::stride).Default(empty).Help("stride of the window, as kernel; 1 by default");
  f.Add("pad", &P::pad)
      .Default(empty)
      .Help(
          "padding on either side, as kernel; same: as much as gives ceil(size / stride) windows, "
          "like TensorFlow; 0 by default; never the maximum");
  f.Add("p_value", &P::p_value).Default(std::nullopt).Range(1, 3).Help("p of lp");
  f.Add("count_include_pad", &P::count_include_pad)
      .Default(std::nullopt)
      .Help("avg: whether padding counts in the divisor; true by default");
  f.Add("layout", &P::layout)
      .Enum({{"NCW", 0}, {"NCHW", 1}, {"NCDHW", 2}, {"NWC", 3}, {"NHWC", 4}, {"NDHWC", 5}})
      .Default(std::nullopt)
      .Help("order of the axes; NCW, NCHW and NCDHW are supported");
  f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
}

namespace {

constexpr int kMostAxes = 3;
constexpr const char* kLayouts[kMostAxes] = {"NCW", "NCHW", "NCDHW"};

void CheckLayout(const PoolingParam& param, int axes, const std::string& who) {
  if (!param.layout || *param.layout == axes - 1) return;
  Throw(ErrorKind::kConfig,
        "{}: layout must be {} for data with {} axes; the kernels choose the memory layout", who,
        kLayouts[axes - 1], 2 + axes);
}

}  // namespace

void PoolingProperty::Init(const Kwargs& kwargs) {
  Kwargs given = kwargs;
  param_.same_pad = TakeSamePad(&given);
  PropertyWithParam::Init(given);
}

Kwargs PoolingProperty::GetParams() const {
  return param_.same_pad ? WithSamePad(param_.ToKwargs()) : param_.ToKwargs();
}

std::vector<FieldInfo> PoolingProperty::DescribeParams() const {
  return WithSamePadAsChoice(PoolingParam::Describe());
}

void PoolingProperty::Check() {
  const std::string who = TypeString();
  if (param_.layout && *param_.layout >= kMostAxes) {
    Throw(ErrorKind::kConfig,
          "{}: layout must be NCW, NCHW or NCDHW; the kernels choose the memory layout", who);
  }
  if (param_.pool_type == PoolingParam::kLp && !param_.p_value)
    Throw(ErrorKind::kConfig, "{}: pool_type = lp needs p_value (1, 2 or 3)", who);
  if (param_.global_pool) return;
  const int axes = param_.kernel.ndim();
  if (axes < 1 || axes > kMostAxes) {
    Throw(ErrorKind::kConfig,
          "{}: kernel = {} must be (w), (h, w) or (d, h, w); use global_pool for the whole image",
          who, param_.kernel.ToTuple());
  }
  CheckLayout(param_, axes, who);
  if (param_.pooling_convention == PoolingParam::kSame &&
      (axes != 1 || param_.pool_type != PoolingParam::kMax)) {
    Throw(ErrorKind::kConfig,
          "{}: pooling_convention = same is for the maximum over sequences; use pad = same for "
          "TensorFlow's padding",
          who);
  }
  if (param_.same_pad) {
    if (param_.pooling_convention != PoolingParam::kValid) {
      Throw(ErrorKind::kConfig,
            "{}: pad = same decides the number of windows; leave pooling_convention out", who);
    }
    if (param_.count_include_pad.value_or(false)) {
      Throw(ErrorKind::kConfig,
            "{}: the padding of pad = same does not count in a mean; leave count_include_pad out",
            who);
    }
    param_.count_include_pad = false;
  }
  param_.kernel = WindowParam(param_.kernel, axes, 1, 1, who, "kernel");
  param_.stride = WindowParam(param_.stride, axes, 1, 1, who, "stride");
  param_.pad = WindowParam(param_.pad, axes, 0, 0, who, "pad");
  for (int i = 0; i < axes; ++i) {
    if (param_.pad[i] > 0 && param_.pooling_convention == PoolingParam::kSame)
      Throw(ErrorKind::kConfig, "{}: pooling_convention = same excludes pad", who);
    if (param_.pad[i] >= param_.kernel[i]) {
      Throw(ErrorKind::kConfig, "{}: pad = {} must be smaller than kernel = {}", who,
            param_.pad.ToTuple(), param_.kernel.ToTuple());
    }
  }
}

PoolingAxes AxesOf(const PoolingParam& param, const TShape& data, const TShape& output) {
  PoolingAxes axes;
  PoolingAxis* const places[kMostAxes] = {&axes.w, &axes.h, &axes.d};
  for (int i = data.ndim() - 1; i >= 2; --i) {
    PoolingAxis& axis = *places[data.ndim() - 1 - i];
    if (param.global_pool) {
      axis = {data[i], output[i], data[i], 1, 0};
      continue;
    }
    axis = {data[i], output[i], param.kernel[i - 2], param.stride[i - 2], param.pad[i - 2]};
    if (param.same_pad) axis.pad = SamePadding(axis.in, axis.kernel, axis.stride).before;
  }
  return axes;
}

int64_t PoolingDivisor(const PoolingParam& param, const PoolingAxes& axes, int64_t y, int64_t x) {
  if (param.pool_type == PoolingParam::kSum) return 1;
  return PoolingCells(param.count_include_pad.value_or(true), axes, 0, y, x);
}

bool PoolingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape &data = (*in)[0], &output = (*out)[0];
  // A window over everything fits data of any rank.
  const int rank = !param_.global_pool ? 2 + param_.kernel.ndim()
                   : data.has_rank()   ? data.ndim()
                                       : output.ndim();
  if (rank < 0) return false;
  const int axes = rank - 2;
  if (axes < 1 || axes > kMostAxes || (data.has_rank() && data.ndim() != rank)) {
    Throw(ErrorKind::kConfig, "{}: data {} must be {}", TypeString(), data.ToString(),
          param_.global_pool ? "sequences [N, C, W], images [N, C, H, W] or volumes [N, C, D, H, W]"
          : axes == 1        ? "sequences [N, C, W] for a kernel with 1 axis"
          : axes == 2        ? "images [N, C, H, W] for a kernel with 2 axes"
                             : "volumes [N, C, D, H, W] for a kernel with 3 axes");
  }
  CheckLayout(param_, axes, TypeString());
  UnifyShape(TShape::OfRank(rank), &data, TypeString(), "data");
  TShape expected = data;
  for (int i = 2; i < rank; ++i) {
    if (param_.global_pool) {
      expected[i] = 1;
    } else if (data[i] >= 0 && param_.same_pad) {
      expected[i] = CeilDivide(data[i], param_.stride[i - 2]);
    } else if (data[i] >= 0) {
      const int64_t padded = data[i] + 2 * param_.pad[i - 2], kernel = param_.kernel[i - 2],
                    stride = param_.stride[i - 2];
      if (kernel > padded) {
        Throw(ErrorKind::kConfig,
              "{}: kernel {} exceeds the padded data {} ({} cells) along axis {}", TypeString(),
              param_.kernel.ToTuple(), data.ToString(), padded, i);
      }
      const int convention = param_.pooling_convention;
      const bool up = convention == PoolingParam::kFull;
      expected[i] = convention == PoolingParam::kSame
                        ? CeilDivide(data[i], stride)
                        : (padded - kernel + (up ? stride - 1 : 0)) / stride + 1;
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
