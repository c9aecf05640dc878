// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/leaky_relu/leaky_relu.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void LeakyReLUProperty::Check() {
  if (param_.act_type == kRReLU && param_.lower_bound > param_.upper_bound) {
    Throw(ErrorKind::kConfig, "LeakyReLU: lower_bound = {} is above upper_bound = {}",
          param_.lower_bound, param_.upper_bound);
  }
}

std::vector<std::string> LeakyReLUProperty::ListArguments() const {
  if (param_.act_type == kPReLU) return {"data", "gamma"};
  return {"data"};
}

std::vector<std::string> LeakyReLUProperty::ListOutputs() const {
  if (param_.act_type == kRReLU) return {"output", "mask"};
  return {"output"};
}

TShape LeakyReLUProperty::ExpandGamma(const TShape& gamma, const TShape& data) {
  TShape wide = TShape::OfRank(data.ndim());
  for (int i = 0; i < wide.ndim(); ++i) wide[i] = 1;
  if (gamma.ndim() == 1 && (gamma[0] != 1 || data.ndim() == 1)) {
    wide[data.ndim() > 1 ? 1 : 0] = gamma[0];
  } else {
    for (int i = 0; i < gamma.ndim() && i < data.ndim(); ++i)
      wide[data.ndim() - 1 - i] = gamma[gamma.ndim() - 1 - i];
  }
  bool fits = gamma.ndim() <= data.ndim();
  for (int i = 0; i < wide.ndim(); ++i) fits = fits && (wide[i] == 1 || wide[i] == data[i]);
  if (!fits) {
    Throw(ErrorKind::kConfig,
          "LeakyReLU: gamma has shape {}, but data of shape {} need one number per channel",
          gamma.ToString(), data.ToString());
  }
  return wide;
}

bool LeakyReLUProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  for (const TShape& shape : *out) UnifyShape(shape, &data, TypeString(), "output");
  for (TShape& shape : *out) shape = data;
  if (param_.act_type != kPReLU) return data.known();
  if (!data.has_rank()) return false;
  if (data.ndim() == 0)
    Throw(ErrorKind::kConfig, "LeakyReLU: prelu needs data with a channel axis, not a scalar");
  TShape& gamma = (*in)[1];
  if (!gamma.known())
    UnifyShape(TShape{data[data.ndim() > 1 ? 1 : 0]}, &gamma, TypeString(), "gamma");
  if (data.known() && gamma.known()) ExpandGamma(gamma, data);
  return data.known() && gamma.known();
}

bool LeakyReLUProperty::GradientFromOutput() const {
  switch (param_.act_type) {
    case kLeaky:
    case kELU:
      return param_.slope >= 0;
    case kRReLU:
    case kSELU:
      return true;
    default:
      return false;
  }
}

std::vector<int> LeakyReLUProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> reads = {out_grad[0], GradientFromOutput() ? out_data[0] : in_data[0]};
  if (param_.act_type == kPReLU) reads.push_back(in_data[1]);
  if (param_.act_type == kRReLU) reads.push_back(out_data[1]);
  return reads;
}

std::vector<InplacePair> LeakyReLUProperty::BackwardInplaceOption() const {
  // gamma's gradient reads what the data's gradient would overwrite.
  if (param_.act_type == kPReLU) return {};
  return {{0, 0}};
}

std::vector<ResourceRequest> LeakyReLUProperty::ForwardResource(const std::vector<TShape>&) const {
  if (param_.act_type != kRReLU) return {};
  return {{ResourceRequest::kRandom, 0}};
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(leaky_relu, registry) {
  registry.AddProperty("LeakyReLU", {},
                       [] { return std::make_unique<mxtrain::LeakyReLUProperty>(); });
}
