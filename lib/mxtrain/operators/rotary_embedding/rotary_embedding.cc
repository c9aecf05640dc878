// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/rotary_embedding/rotary_embedding.h"

#include "mxtrain/base/error.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::rotary {

std::vector<std::string> RotaryProperty::ListArguments() const {
  if (!param_.use_position) return {"data"};
  return {"data", "position"};
}

bool RotaryProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &result = (*out)[0];
  if (!data.known() && result.known()) data = result;
  if (!data.known()) return false;
  const int n = data.ndim();
  if (n < 3) {
    Throw(ErrorKind::kConfig,
          "{}: data has shape {}; expected three axes or more, [batch, ..., tokens, depth]",
          TypeString(), data.ToString());
  }
  const int64_t depth = data[n - 1], turned = param_.rotary_dim.value_or(depth);
  if (turned % 2 != 0 || turned > depth) {
    Throw(ErrorKind::kConfig,
          "{}: {} elements of {} cannot be turned in pairs; rotary_dim must be even and at most "
          "the depth (last axis) of the data {}",
          TypeString(), turned, depth, data.ToString());
  }
  if (param_.use_position) UnifyShape({data[0]}, &(*in)[kPosition], TypeString(), "position");
  UnifyShape(data, &result, TypeString(), "output");
  return true;
}

bool RotaryProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                               std::vector<DType>* aux) const {
  std::vector<DType> data(in->begin(), in->begin() + 1);
  const bool known = OperatorProperty::InferType(&data, out, aux);
  (*in)[kData] = data[0];
  if (param_.use_position && (*in)[kPosition] == DType::kUnknown)
    (*in)[kPosition] = DType::kFloat32;
  return known;
}

std::vector<int> RotaryProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                           const std::vector<int>& in_data,
                                                           const std::vector<int>&) const {
  if (!param_.use_position) return {out_grad[0]};
  return {out_grad[0], in_data[kPosition]};
}

RotarySetup RotaryProperty::Prepare(const TShape& data) const {
  const int n = data.ndim();
  RotarySetup setup;
  setup.batch = data[0];
  setup.heads = data.Product(1, n - 2);
  setup.tokens = data[n - 2];
  setup.depth = data[n - 1];
  setup.pairs = param_.rotary_dim.value_or(setup.depth) / 2;
  setup.base = param_.base;
  setup.interleaved = param_.interleaved;
  setup.use_position = param_.use_position;
  return setup;
}

}  // namespace mxtrain::rotary

MXTRAIN_OPERATOR(rotary_embedding, registry) {
  registry.AddProperty("rotary_embedding", {},
                       [] { return std::make_unique<mxtrain::rotary::RotaryProperty>(); });
}
