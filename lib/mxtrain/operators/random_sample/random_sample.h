// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of random numbers of one distribution: _random_uniform, _random_normal and so on. Element
// i depends on the node's stream and i alone, so a result does not depend on threads. Uniform
// numbers and integers are the same on every device, normal ones up to rounding. The others compare
// functions such as log with random numbers: where a device rounds these differently, an element
// may differ entirely.
// Their forms with a distribution per element are in random_sample_arrays.h.
#include <limits>
#include <optional>
#include <type_traits>

#include "mxtrain/operator/asked_shape.h"
#include "mxtrain/operator/property.h"
#include "mxtrain/operators/random_sample/distributions.h"

namespace mxtrain::random_sample {

struct SampleParam {
  static constexpr DType kDefaultType = DType::kFloat32;
  static constexpr bool kIntegers = false;
  TShape shape;
  std::optional<DType> dtype;
  template <typename P>
  static void DeclareArray(Fields<P>& f) {
    f.Add("shape", &P::shape)
        .Default(TShape{})
        .Help("shape of the result; () and lengths of 0 are inferred from its readers");
    f.Add("dtype", &P::dtype)
        .Default(std::nullopt)
        .Help(format("type of the result; {} unless inferred from its readers",
                     NameOf(P::kDefaultType)));
    f.Ignored("ctx", "the device is that of the graph");
  }
};

struct UniformParam : SampleParam, Parameter<UniformParam> {
  double low = 0, high = 1;
  static void Declare(Fields<UniformParam>& f) {
    f.Add("low", &UniformParam::low).Default(0).Help("lower bound, inclusive");
    f.Add("high", &UniformParam::high).Default(1).Help("upper bound, exclusive");
    DeclareArray(f);
  }
  Uniform Drawing() const { return {low, high}; }
};

struct NormalParam : SampleParam, Parameter<NormalParam> {
  double loc = 0, scale = 1;
  static void Declare(Fields<NormalParam>& f) {
    f.Add("loc", &NormalParam::loc).Default(0).Help("mean");
    f.Add("scale", &NormalParam::scale).Default(1).Range(0).Help("standard deviation");
    DeclareArray(f);
  }
  Normal Drawing() const { return {loc, scale}; }
};

struct ExponentialParam : SampleParam, Parameter<ExponentialParam> {
  double lam = 1;
  static void Declare(Fields<ExponentialParam>& f) {
    f.Add("lam", &ExponentialParam::lam).Default(1).RangeAbove(0).Help("rate: 1 / mean");
    DeclareArray(f);
  }
  Exponential Drawing() const { return {lam}; }
};

struct GammaParam : SampleParam, Parameter<GammaParam> {
  double alpha = 1, beta = 1;
  static void Declare(Fields<GammaParam>& f) {
    f.Add("alpha", &GammaParam::alpha).Default(1).RangeAbove(0).Help("shape");
    f.Add("beta", &GammaParam::beta).Default(1).RangeAbove(0).Help("scale: mean / shape");
    DeclareArray(f);
  }
  Gamma Drawing() const { return {alpha, beta}; }
};

struct PoissonParam : SampleParam, Parameter<PoissonParam> {
  double lam = 1;
  static void Declare(Fields<PoissonParam>& f) {
    f.Add("lam", &PoissonParam::lam).Default(1).Range(0).Help("mean");
    DeclareArray(f);
  }
  Poisson Drawing() const { return {lam}; }
};

struct NegativeBinomialParam : SampleParam, Parameter<NegativeBinomialParam> {
  int k = 1;
  double p = 1;
  static void Declare(Fields<NegativeBinomialParam>& f) {
    f.Add("k", &NegativeBinomialParam::k).Default(1).Range(1).Help("number of successes");
    f.Add("p", &NegativeBinomialParam::p)
        .Default(1)
        .RangeAbove(0, 1)
        .Help("probability of a success");
    DeclareArray(f);
  }
  NegativeBinomial Drawing() const { return {static_cast<double>(k), p}; }
};

struct GeneralizedNegativeBinomialParam : SampleParam, Parameter<GeneralizedNegativeBinomialParam> {
  double mu = 1, alpha = 1;
  static void Declare(Fields<GeneralizedNegativeBinomialParam>& f) {
    using P = GeneralizedNegativeBinomialParam;
    f.Add("mu", &P::mu).Default(1).Range(0).Help("mean");
    f.Add("alpha", &P::alpha)
        .Default(1)
        .Range(0)
        .Help("dispersion: the variance is mu + alpha mu^2");
    DeclareArray(f);
  }
  GeneralizedNegativeBinomial Drawing() const { return {mu, alpha}; }
};

struct RandintParam : SampleParam, Parameter<RandintParam> {
  static constexpr DType kDefaultType = DType::kInt32;
  static constexpr bool kIntegers = true;
  int64_t low = 0, high = 0;
  static void Declare(Fields<RandintParam>& f) {
    f.Add("low", &RandintParam::low).Required().Help("lower bound, inclusive");
    f.Add("high", &RandintParam::high).Required().Help("upper bound, exclusive");
    DeclareArray(f);
  }
  Integers Drawing() const { return {low, high}; }
};

template <typename P>
class SampleProperty final : public PropertyWithParam<P> {
 public:
  explicit SampleProperty(const char* name) : name_(name) {}
  std::string TypeString() const override { return name_; }
  std::string Description() const override { return "an array of random numbers"; }
  std::vector<std::string> ListArguments() const override { return {}; }
  bool InferShape(std::vector<TShape>*, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    const TShape asked = AskedShape(this->param_.shape);
    if (asked.has_rank()) UnifyShape(asked, &(*out)[0], name_, "shape");
    return (*out)[0].known();
  }
  bool InferType(std::vector<DType>*, std::vector<DType>* out, std::vector<DType>*) const override {
    const DType asked =
        this->param_.dtype.value_or((*out)[0] == DType::kUnknown ? P::kDefaultType : (*out)[0]);
    if ((*out)[0] != DType::kUnknown && (*out)[0] != asked) {
      Throw(ErrorKind::kConfig, "{}: dtype is {}, but the output is {}", name_, NameOf(asked),
            NameOf((*out)[0]));
    }
    if constexpr (P::kIntegers) {
      using Limits = std::numeric_limits<int32_t>;
      const P& p = this->param_;
      if (asked == DType::kInt32 && (p.low < Limits::min() || p.high - 1 > Limits::max())) {
        Throw(ErrorKind::kConfig,
              "{}: int32 cannot hold the numbers from low = {} to high = {}; use dtype = int64",
              name_, p.low, p.high);
      }
    }
    (*out)[0] = asked;
    return true;
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }

 protected:
  void Check() override {
    if constexpr (P::kIntegers) {
      if (this->param_.low >= this->param_.high) {
        Throw(ErrorKind::kConfig, "{}: low = {} must be less than high = {}", name_,
              this->param_.low, this->param_.high);
      }
    }
  }

 private:
  const char* name_;
};

// f(name, TypeTag of the parameters) for every operator.
template <typename F>
void ForEachSample(F f) {
  f("_random_uniform", std::type_identity<UniformParam>());
  f("_random_normal", std::type_identity<NormalParam>());
  f("_random_exponential", std::type_identity<ExponentialParam>());
  f("_random_gamma", std::type_identity<GammaParam>());
  f("_random_poisson", std::type_identity<PoissonParam>());
  f("_random_negative_binomial", std::type_identity<NegativeBinomialParam>());
  f("_random_generalized_negative_binomial",
    std::type_identity<GeneralizedNegativeBinomialParam>());
  f("_random_randint", std::type_identity<RandintParam>());
}

}  // namespace mxtrain::random_sample
