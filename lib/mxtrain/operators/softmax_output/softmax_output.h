// SPDX-License-Identifier: Apache-2.0
#pragma once
// SoftmaxOutput: softmax in forward; the gradient of the cross-entropy with `label` in backward,
// ignoring the head gradient. The loss itself is never computed. Inputs data and label; label has
// no gradient.
//
// The data are viewed as [outer, classes, inner]: plain [N, product of the rest, 1]; preserve_shape
// [product of all but the last, last, 1]; multi_output [N, axis 1, product of the rest]. A label
// with the shape of the data holds probabilities instead of class indices.
//
// With class weights w and gamma of the focal loss (Lin et al., arXiv 1708.02002, equation 5) the
// loss of one softmax p with the target t, a distribution over the classes, is
//   L = sum_k t_k w_k (1 - p_k)^gamma (-log p_k)
// which is linear in t: a mix of two examples has the mix of their losses. Divisors count labels,
// whatever their weights.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum SoftmaxNormalization : int { kSoftmaxNull, kSoftmaxBatch, kSoftmaxValid };

struct SoftmaxOutputParam : Parameter<SoftmaxOutputParam> {
  float grad_scale, ignore_label, smooth_alpha;
  bool multi_output, use_ignore, preserve_shape, out_grad;
  int normalization;
  std::vector<double> class_weights;  // empty: all 1
  float focal_gamma;
  // Whether the loss differs from the plain cross-entropy.
  bool weighted() const { return !class_weights.empty() || focal_gamma > 0; }
  static void Declare(Fields<SoftmaxOutputParam>& f);
};

// The extents of one softmax within an array.
struct SoftmaxView {
  int64_t outer = 0, classes = 0, inner = 0;
};

class SoftmaxOutputProperty final : public PropertyWithParam<SoftmaxOutputParam> {
 public:
  std::string TypeString() const override { return "SoftmaxOutput"; }
  // Parameters unknown to MXNet are omitted unless set: it rejects unknown ones.
  Kwargs GetParams() const override;
  std::string Description() const override {
    return "softmax with the gradient of the cross-entropy: the head of a classifier";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "label"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override { return argument == 0; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }

  MXTRAIN_API SoftmaxView View(const TShape& data) const;

 protected:
  void Check() override;

 private:
  TShape DefaultLabelShape(const TShape& data) const;
  bool LabelFits(const TShape& label, const TShape& data) const;
  void CheckWeights(const TShape& data) const;
};

}  // namespace mxtrain
