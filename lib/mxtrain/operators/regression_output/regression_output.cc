// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/regression_output/regression_output.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

std::string RegressionOutputProperty::TypeString() const {
  switch (kind_) {
    case RegressionKind::kLinear:
      return "LinearRegressionOutput";
    case RegressionKind::kLogistic:
      return "LogisticRegressionOutput";
    default:
      return "MAERegressionOutput";
  }
}

std::string RegressionOutputProperty::Description() const {
  switch (kind_) {
    case RegressionKind::kLinear:
      return "the identity with the gradient of the squared error";
    case RegressionKind::kLogistic:
      return "the sigmoid with the gradient of the cross-entropy";
    default:
      return "the identity with the gradient of the absolute error";
  }
}

bool RegressionOutputProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                          std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape& label = (*in)[1];
  UnifyShape((*out)[0], &data, TypeString(), "output");
  if (data.has_rank() && data.ndim() > 0 && data[0] == TShape::kUnknown && label.has_rank() &&
      label.ndim() > 0)
    data[0] = label[0];
  (*out)[0] = data;
  if (!data.known()) return false;
  if (!label.known()) {
    const bool column = data.ndim() == 2 && data[1] == 1;
    UnifyShape(column && (!label.has_rank() || label.ndim() == 1) ? TShape{data[0]} : data, &label,
               TypeString(), "label");
  } else if (label.Size() != data.Size()) {
    Throw(ErrorKind::kConfig,
          "{}: label has shape {}, but must have as many elements as data of shape {}",
          TypeString(), label.ToString(), data.ToString());
  }
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(regression_output, registry) {
  using namespace mxtrain;
  for (const RegressionKind kind :
       {RegressionKind::kLinear, RegressionKind::kLogistic, RegressionKind::kAbsolute}) {
    registry.AddProperty(RegressionOutputProperty(kind).TypeString(), {},
                         [kind] { return std::make_unique<RegressionOutputProperty>(kind); });
  }
}
