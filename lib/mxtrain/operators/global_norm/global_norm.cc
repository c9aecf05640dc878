// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/global_norm/global_norm.h"

#include <algorithm>

#include "mxtrain/operator/registry.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::global_norm {
namespace {

template <typename P>
class NormProperty : public PropertyWithParam<P> {
 public:
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
};

class MultiSumSqProperty final : public NormProperty<MultiSumSqParam> {
 public:
  std::string TypeString() const override { return "multi_sum_sq"; }
  std::string Description() const override {
    return "the sum of squares of each input, in float64";
  }
  std::string NumArgsKey() const override { return "num_arrays"; }
  std::vector<std::string> ListArguments() const override {
    std::vector<std::string> names;
    for (int i = 0; i < param_.num_arrays; ++i) names.push_back(format("array{}", i));
    return names;
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    TShape sums{param_.num_arrays};
    UnifyShape((*out)[0], &sums, TypeString(), "output");
    (*out)[0] = sums;
    return std::all_of(in->begin(), in->end(), [](const TShape& shape) { return shape.known(); });
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    UnifyType(DType::kFloat64, &(*out)[0], TypeString(), "output");
    return std::none_of(in->begin(), in->end(), [](DType type) { return type == DType::kUnknown; });
  }
};

class ClipGlobalNormProperty final : public NormProperty<ClipGlobalNormParam> {
 public:
  std::string TypeString() const override { return "clip_global_norm"; }
  std::string Description() const override {
    return "the scalars of an update, with the gradient factor clipped by the norm of all "
           "gradients";
  }
  std::vector<std::string> ListArguments() const override { return {"sums", "scalars"}; }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{1, 0}}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    TShape scalars = (*in)[1];
    UnifyShape((*out)[0], &scalars, TypeString(), "output");
    (*in)[1] = (*out)[0] = scalars;
    if (!scalars.known() || !(*in)[0].known()) return false;
    if (scalars.ndim() == 0 || scalars[scalars.ndim() - 1] != optimizer_update::kNumScalars) {
      Throw(ErrorKind::kConfig, "{}: scalars has shape {}, but its last axis must have length {}",
            TypeString(), scalars.ToString(), static_cast<int>(optimizer_update::kNumScalars));
    }
    return true;
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    UnifyType(DType::kFloat64, &(*in)[0], TypeString(), "sums");
    UnifyType(DType::kFloat32, &(*in)[1], TypeString(), "scalars");
    UnifyType(DType::kFloat32, &(*out)[0], TypeString(), "output");
    return true;
  }

 private:
  void Check() override {
    if (param_.max_norm == 0)
      Throw(ErrorKind::kConfig, "clip_global_norm: max_norm must be positive");
  }
};

}  // namespace
}  // namespace mxtrain::global_norm

MXTRAIN_OPERATOR(global_norm, registry) {
  using namespace mxtrain::global_norm;
  registry.AddProperty("multi_sum_sq", {}, [] { return std::make_unique<MultiSumSqProperty>(); });
  registry.AddProperty("clip_global_norm", {},
                       [] { return std::make_unique<ClipGlobalNormProperty>(); });
}
