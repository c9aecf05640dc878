// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/ctc_loss/ctc_loss.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

std::vector<std::string> CtcLossProperty::ListArguments() const {
  std::vector<std::string> names = {"data", "label"};
  if (param_.use_data_lengths) names.push_back("data_lengths");
  if (param_.use_label_lengths) names.push_back("label_lengths");
  return names;
}

bool CtcLossProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &label = (*in)[kLabel];
  if (data.has_rank() && data.ndim() != 3) {
    Throw(ErrorKind::kConfig, "CTCLoss: data has shape {}; expected scores [T, N, classes]",
          data.ToString());
  }
  if (label.has_rank() && label.ndim() != 2) {
    Throw(ErrorKind::kConfig, "CTCLoss: label has shape {}; expected [N, labels]",
          label.ToString());
  }
  if (!data.has_rank()) data = TShape::OfRank(3);
  if (!label.has_rank()) label = TShape::OfRank(2);
  if (data[2] == 0)
    Throw(ErrorKind::kConfig, "CTCLoss: data has shape {}, which has no class", data.ToString());
  TShape batch{data[1]};
  UnifyShape(TShape{label[0]}, &batch, TypeString(), "label, without its last axis,");
  UnifyShape((*out)[0], &batch, TypeString(), "output");
  const std::vector<std::string> names = ListArguments();
  for (size_t i = 2; i < in->size(); ++i) UnifyShape((*in)[i], &batch, TypeString(), names[i]);
  for (size_t i = 2; i < in->size(); ++i) (*in)[i] = batch;
  (*out)[0] = batch;
  data[1] = label[0] = batch[0];
  return data.known() && label.known();
}

bool CtcLossProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                std::vector<DType>*) const {
  if ((*in)[kData] == DType::kUnknown) (*in)[kData] = (*out)[0];
  for (size_t i = kLabel; i < in->size(); ++i) {
    // Half precision does not hold every class.
    if ((*in)[i] == DType::kUnknown)
      (*in)[i] = (*in)[kData] == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  }
  if ((*in)[kData] == DType::kUnknown) return false;
  UnifyType((*in)[kData], &(*out)[0], TypeString(), "output");
  return true;
}

std::vector<int> CtcLossProperty::DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                            const std::vector<int>& in_data,
                                                            const std::vector<int>&) const {
  std::vector<int> reads = {out_grad[0]};
  reads.insert(reads.end(), in_data.begin(), in_data.end());
  return reads;
}

double CtcLossProperty::ForwardFlops(const std::vector<TShape>& in,
                                     const std::vector<TShape>&) const {
  const auto size = static_cast<double>(in[kData].Size());
  return size +
         static_cast<double>(in[kData].Product(0, 2)) * static_cast<double>(2 * in[kLabel][1] + 1);
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(ctc_loss, registry) {
  registry.AddProperty("CTCLoss", {"ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"},
                       [] { return std::make_unique<mxtrain::CtcLossProperty>(); });
}
