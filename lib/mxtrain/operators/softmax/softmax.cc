// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/softmax/softmax.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void SoftmaxParam::Declare(Fields<SoftmaxParam>& f) {
  f.Add("axis", &SoftmaxParam::axis)
      .Default(-1)
      .Help("axis of the softmax; negative counts from the end");
  f.Add("temperature", &SoftmaxParam::temperature)
      .Default(std::nullopt)
      .RangeAbove(0)
      .Help("divisor of the data; None: 1");
  f.Add("dtype", &SoftmaxParam::dtype)
      .Default(std::nullopt)
      .Help("element type of the output; None: that of the data");
  f.Add("use_length", &SoftmaxParam::use_length)
      .Default(false)
      .Help("a second input, length, says how many elements of each softmax count");
}

std::string SoftmaxProperty::TypeString() const {
  switch (kind_) {
    case SoftmaxKind::kLogSoftmax:
      return "log_softmax";
    case SoftmaxKind::kSoftmin:
      return "softmin";
    default:
      return "softmax";
  }
}

std::string SoftmaxProperty::Description() const {
  switch (kind_) {
    case SoftmaxKind::kLogSoftmax:
      return "the logarithm of the softmax function over an axis";
    case SoftmaxKind::kSoftmin:
      return "the softmax function of the negated data over an axis";
    default:
      return "the softmax function over an axis";
  }
}

void SoftmaxProperty::Check() {
  if (!param_.dtype || IsFloating(*param_.dtype)) return;
  Throw(ErrorKind::kConfig,
        "{}: dtype = {}, but the output can be float32, float64, float16 or bfloat16", TypeString(),
        NameOf(*param_.dtype));
}

SoftmaxView SoftmaxProperty::View(const TShape& data) const {
  const int axis = CheckAxis(param_.axis, data, TypeString());
  return {data.Product(0, axis), data[axis], data.Product(axis + 1, data.ndim())};
}

std::vector<std::string> SoftmaxProperty::ListArguments() const {
  if (param_.use_length) return {"data", "length"};
  return {"data"};
}

bool SoftmaxProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape& data = (*in)[kData];
  UnifyShape((*out)[0], &data, TypeString(), "output");
  if (data.has_rank()) {
    const int axis = CheckAxis(param_.axis, data, TypeString());
    if (param_.use_length) {
      // The data's without the axis; [1] for data of one axis.
      TShape& length = (*in)[kLength];
      TShape expected = TShape::OfRank(data.ndim() > 1 ? data.ndim() - 1 : 1);
      if (data.ndim() == 1) expected[0] = 1;
      for (int i = 0, to = 0; i < data.ndim(); ++i) {
        if (i != axis) expected[to++] = data[i];
      }
      UnifyShape(length, &expected, TypeString(), "length");
      length = expected;
      for (int i = 0, from = 0; i < data.ndim(); ++i) {
        if (i != axis) data[i] = expected[from++];
      }
    }
  }
  (*out)[0] = data;
  return data.known();
}

bool SoftmaxProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                std::vector<DType>*) const {
  DType& data = (*in)[kData];
  DType& output = (*out)[0];
  if (param_.dtype) UnifyType(*param_.dtype, &output, TypeString(), "output");
  if (data == DType::kUnknown) data = output;
  if (data == DType::kUnknown) return false;
  if (!param_.dtype) UnifyType(data, &output, TypeString(), "output");
  // Narrow types cannot represent all lengths.
  if (param_.use_length && (*in)[kLength] == DType::kUnknown)
    (*in)[kLength] = data == DType::kFloat64 ? data : DType::kFloat32;
  return true;
}

std::vector<int> SoftmaxProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> reads = {out_grad[0], out_data[0]};
  if (param_.use_length) reads.push_back(in_data[kLength]);
  return reads;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(softmax, registry) {
  using namespace mxtrain;
  const std::pair<const char*, SoftmaxKind> kinds[] = {{"softmax", SoftmaxKind::kSoftmax},
                                                       {"log_softmax", SoftmaxKind::kLogSoftmax},
                                                       {"softmin", SoftmaxKind::kSoftmin}};
  for (const auto& [name, kind] : kinds) {
    registry.AddProperty(name, {},
                         [kind = kind] { return std::make_unique<SoftmaxProperty>(kind); });
  }
}
