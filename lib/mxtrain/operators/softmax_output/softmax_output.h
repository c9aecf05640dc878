#pragma once
// SoftmaxOutput: softmax forward; backward the gradient of the cross-entropy with `label`, whatever the head gradient. The loss itself is
// never computed. Inputs data and label; nothing flows to label.
//
// The data are seen as [outer, classes, inner]: plain [N, product of the rest, 1]; preserve_shape [product of all but the last, last, 1];
// multi_output [N, axis 1, product of the rest]. A label of the shape of the data holds probabilities instead of class numbers.
#include "mxtrain/operator/property.h"

namespace mxtrain {

enum SoftmaxNormalization : int { kSoftmaxNull, kSoftmaxBatch, kSoftmaxValid };

struct SoftmaxOutputParam : Parameter<SoftmaxOutputParam> {
  float grad_scale, ignore_label, smooth_alpha;
  bool multi_output, use_ignore, preserve_shape, out_grad;
  int normalization;
  static void Declare(Fields<SoftmaxOutputParam>& f);
};

// The extents of one softmax within an array.
struct SoftmaxView {
  int64_t outer = 0, classes = 0, inner = 0;
};

class SoftmaxOutputProperty final : public PropertyWithParam<SoftmaxOutputParam> {
 public:
  std::string TypeString() const override { return "SoftmaxOutput"; }
  std::string Description() const override { return "softmax with the gradient of the cross-entropy: the head of a classifier"; }
  std::vector<std::string> ListArguments() const override { return {"data", "label"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out, std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override { return argument == 0; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }

  SoftmaxView View(const TShape& data) const;

 protected:
  void Check() override;

 private:
  TShape DefaultLabelShape(const TShape& data) const;
  bool LabelFits(const TShape& label, const TShape& data) const;
};

}  // namespace mxtrain
