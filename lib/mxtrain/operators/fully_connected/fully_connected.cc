// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/fully_connected/fully_connected.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {

void FullyConnectedParam::Declare(Fields<FullyConnectedParam>& f) {
  using P = FullyConnectedParam;
  f.Add("num_hidden", &P::num_hidden).Required().Range(1).Help("width of the output");
  f.Add("no_bias", &P::no_bias).Default(false).Help("no bias");
  f.Add("flatten", &P::flatten)
      .Default(true)
      .Help("flatten all axes except the first; otherwise only the last axis is multiplied");
}

std::vector<std::string> FullyConnectedProperty::ListArguments() const {
  if (param_.no_bias) return {"data", "weight"};
  return {"data", "weight", "bias"};
}

TShape FullyConnectedProperty::MatrixOf(const TShape& data) const {
  if (param_.flatten) return {data[0], data.Product(1, data.ndim())};
  return {data.Product(0, data.ndim() - 1), data[data.ndim() - 1]};
}

void FullyConnectedProperty::InferFlat(TShape* data, TShape* weight, TShape* output) const {
  TShape out{data->has_rank() ? (*data)[0] : TShape::kUnknown, param_.num_hidden};
  UnifyShape(out, output, TypeString(), "output");
  if (!data->has_rank()) return;
  (*data)[0] = (*output)[0];
  const bool inputs_known =
      std::none_of(data->begin() + 1, data->end(), [](int64_t d) { return d < 0; });
  if (inputs_known) {
    UnifyShape({param_.num_hidden, data->Product(1, data->ndim())}, weight, TypeString(), "weight");
  } else if (data->ndim() == 2) {
    (*data)[1] = (*weight)[1];
  }
}

void FullyConnectedProperty::InferLastAxis(TShape* data, TShape* weight, TShape* output) const {
  const int rank = std::max(data->ndim(), output->ndim());
  if (rank < 0) return;
  UnifyShape(TShape::OfRank(rank), data, TypeString(), "data");
  TShape out = *data;
  out[rank - 1] = param_.num_hidden;
  UnifyShape(out, output, TypeString(), "output");
  TShape back = *output;
  back[rank - 1] = (*weight)[1];
  UnifyShape(back, data, TypeString(), "data");
  UnifyShape({param_.num_hidden, (*data)[rank - 1]}, weight, TypeString(), "weight");
}

bool FullyConnectedProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                        std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  if (data.ndim() == 0)
    Throw(ErrorKind::kConfig, "{}: data has shape []; at least one axis is needed", TypeString());
  UnifyShape({param_.num_hidden, TShape::kUnknown}, &weight, TypeString(), "weight");
  if (!param_.no_bias) UnifyShape({param_.num_hidden}, &(*in)[kBias], TypeString(), "bias");
  if (param_.flatten) {
    InferFlat(&data, &weight, &output);
  } else {
    InferLastAxis(&data, &weight, &output);
  }
  return data.known() && weight.known() && output.known();
}

bool FullyConnectedProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                       std::vector<DType>*) const {
  return weighted::InferTypes(*this, !param_.no_bias, in, out);
}

std::vector<int> FullyConnectedProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                                   const std::vector<int>& in_data,
                                                                   const std::vector<int>&) const {
  return {out_grad[0], in_data[kData], in_data[kWeight]};
}

double FullyConnectedProperty::ForwardFlops(const std::vector<TShape>& in,
                                            const std::vector<TShape>& out) const {
  return static_cast<double>(out[0].Size()) * static_cast<double>(in[kWeight][1]);
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(fully_connected, registry) {
  registry.AddProperty("FullyConnected", {},
                       [] { return std::make_unique<mxtrain::FullyConnectedProperty>(); });
}
