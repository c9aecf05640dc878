// SPDX-License-Identifier: Apache-2.0
#pragma once
// softmax, log_softmax and softmin over one axis, with their true gradients (SoftmaxOutput is the
// loss). With temperature T, and sums over the axis:
//   softmax:      y_k = e^(x_k / T) / sum e^(x_j / T)
//   log_softmax:  y_k = x_k / T - log(sum e^(x_j / T))
//   softmin:      the softmax of -x
//
// With use_length, `length` has an element for every softmax: only its first so many elements
// count, those behind them are 0 and have no gradient. It is truncated to an integer within 0 ..
// the length of the axis. It has no gradient.
//
// A NaN makes its whole softmax NaN, as do a positive infinity and a row of negative ones.
#include <optional>

#include "mxtrain/operator/property.h"
#include "mxtrain/operators/softmax_output/softmax_output.h"

namespace mxtrain {

enum class SoftmaxKind { kSoftmax, kLogSoftmax, kSoftmin };

struct SoftmaxParam : Parameter<SoftmaxParam> {
  int axis;
  std::optional<double> temperature;
  std::optional<DType> dtype;
  bool use_length;
  static void Declare(Fields<SoftmaxParam>& f);
};

class SoftmaxProperty final : public PropertyWithParam<SoftmaxParam> {
 public:
  enum Argument { kData, kLength };

  explicit SoftmaxProperty(SoftmaxKind kind) : kind_(kind) {}

  // Whether the output is the logarithm.
  bool log() const { return kind_ == SoftmaxKind::kLogSoftmax; }
  // 1 / temperature; negative for softmin.
  double scale() const {
    return (kind_ == SoftmaxKind::kSoftmin ? -1 : 1) / param_.temperature.value_or(1);
  }
  // The extents of the softmaxes within the data. Throws kConfig for an axis that is out of range.
  MXTRAIN_API SoftmaxView View(const TShape& data) const;

  std::string TypeString() const override;
  std::string Description() const override;
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  bool HasGradient(int argument) const override { return argument == kData; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }

 protected:
  void Check() override;

 private:
  SoftmaxKind kind_;
};

}  // namespace mxtrain
