// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/correlation/correlation.h"

#include "mxtrain/base/math.h"
#include "mxtrain/operator/images.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void CorrelationParam::Declare(Fields<CorrelationParam>& f) {
  using P = CorrelationParam;
  constexpr double kMost = 1 << 20;
  f.Add("kernel_size", &P::kernel_size).Default(1).Range(1, kMost).Help("edge of a patch, odd");
  f.Add("max_displacement", &P::max_displacement)
      .Default(1)
      .Range(0, kMost)
      .Help("largest displacement along an axis");
  f.Add("stride1", &P::stride1).Default(1).Range(1, kMost).Help("step between patches of data1");
  f.Add("stride2", &P::stride2).Default(1).Range(1, kMost).Help("step between displacements");
  f.Add("pad_size", &P::pad_size).Default(0).Range(0, kMost).Help("zero padding on every side");
  f.Add("is_multiply", &P::is_multiply)
      .Default(true)
      .Help("products; otherwise absolute differences");
}

void CorrelationProperty::Check() {
  if (param_.kernel_size % 2 == 1) return;
  Throw(ErrorKind::kConfig, "{}: kernel_size = {} must be odd", TypeString(), param_.kernel_size);
}

CorrelationGeometry::CorrelationGeometry(const CorrelationParam& param, const TShape& data)
    : batch(data[0]),
      channels(data[1]),
      kernel(param.kernel_size),
      displacement(param.max_displacement),
      stride1(param.stride1),
      stride2(param.stride2),
      pad(param.pad_size),
      radius(param.max_displacement / param.stride2) {
  const int64_t border = displacement + (kernel - 1) / 2;
  for (int i = 0; i < 2; ++i) {
    in[i] = data[2 + i];
    out[i] = in[i] < 0 ? TShape::kUnknown : CeilDivide(in[i] + 2 * pad - 2 * border, stride1);
  }
}

bool CorrelationProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  TShape &first = (*in)[0], &second = (*in)[1], &output = (*out)[0];
  UnifyImages(&first, TypeString(), "data1");
  UnifyShape(first, &second, TypeString(), "data2");
  first = second;
  const CorrelationGeometry g(param_, first);
  for (int i = 0; i < 2; ++i) {
    if (g.in[i] < 0 || g.in[i] + 2 * g.pad > 2 * (g.displacement + (g.kernel - 1) / 2)) continue;
    Throw(ErrorKind::kConfig,
          "{}: data {} with pad_size = {} have no place for kernel_size = {} and max_displacement "
          "= {}; use more padding",
          TypeString(), first.ToString(), g.pad, g.kernel, g.displacement);
  }
  TShape expected{g.batch, g.width() * g.width(), g.out[0], g.out[1]};
  UnifyShape(output, &expected, TypeString(), "output");
  output = expected;
  first[0] = second[0] = output[0];
  return first.known() && output.known();
}

double CorrelationProperty::ForwardFlops(const std::vector<TShape>& in,
                                         const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) *
         static_cast<double>(CorrelationGeometry(param_, in[0]).terms());
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(correlation, registry) {
  registry.AddProperty("Correlation", {},
                       [] { return std::make_unique<mxtrain::CorrelationProperty>(); });
}
