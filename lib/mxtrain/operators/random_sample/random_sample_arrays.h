// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of many distributions: _sample_uniform(low, high), _sample_normal(mu, sigma) and
// so on. The arguments are the distributions' parameters, arrays of one shape; each distribution
// gives an array of shape `shape`, so the result has the axes of the arguments, then those of
// `shape`. Its type is `dtype`, else what its reader wants, else float32, whatever the arguments'.
// There is no gradient.
#include <array>
#include <optional>

#include "mxtrain/operator/property.h"
#include "mxtrain/operators/random_sample/distributions.h"

namespace mxtrain::random_sample {

struct SampleArraysParam : Parameter<SampleArraysParam> {
  TShape shape;
  std::optional<DType> dtype;
  static void Declare(Fields<SampleArraysParam>& f) {
    f.Add("shape", &SampleArraysParam::shape)
        .Default(TShape::OfRank(0))
        .Help("shape of the numbers of each distribution; (): one");
    f.Add("dtype", &SampleArraysParam::dtype)
        .Default(std::nullopt)
        .Help("type of the result; float32 unless inferred from its readers");
  }
};

class SampleArraysProperty final : public PropertyWithParam<SampleArraysParam> {
 public:
  SampleArraysProperty(const char* name, std::vector<std::string> arguments)
      : name_(name), arguments_(std::move(arguments)) {}
  std::string TypeString() const override { return name_; }
  std::string Description() const override {
    return "random numbers of a distribution for each element";
  }
  std::vector<std::string> ListArguments() const override { return arguments_; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }

 private:
  const char* name_;
  std::vector<std::string> arguments_;
};

// f(name, names of the arguments, tag of the distribution) for every operator.
template <typename F>
void ForEachArraySample(F f) {
  using Names = std::vector<std::string>;
  f("_sample_uniform", Names{"low", "high"}, std::type_identity<Uniform>());
  f("_sample_normal", Names{"mu", "sigma"}, std::type_identity<Normal>());
  f("_sample_exponential", Names{"lam"}, std::type_identity<Exponential>());
  f("_sample_gamma", Names{"alpha", "beta"}, std::type_identity<Gamma>());
  f("_sample_poisson", Names{"lam"}, std::type_identity<Poisson>());
  f("_sample_negative_binomial", Names{"k", "p"}, std::type_identity<NegativeBinomial>());
  f("_sample_generalized_negative_binomial", Names{"mu", "alpha"},
    std::type_identity<GeneralizedNegativeBinomial>());
}

}  // namespace mxtrain::random_sample
