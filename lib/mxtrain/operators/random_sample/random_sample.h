// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of random numbers: _random_uniform and _random_normal. Element i is draw i of the node's
// stream, so a result does not depend on threads or device.
#include <optional>

#include "mxtrain/operator/property.h"

namespace mxtrain::random_sample {

struct SampleParam {
  TShape shape;
  std::optional<DType> dtype;
  template <typename P>
  static void DeclareArray(Fields<P>& f) {
    f.Add("shape", &P::shape)
        .Default(TShape{})
        .Help("shape of the result; () is inferred from its readers");
    f.Add("dtype", &P::dtype)
        .Default(std::nullopt)
        .Help("type of the result; float32 unless inferred from its readers");
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
  struct Draw {
    double low, high;
    MXTRAIN_HD double operator()(const RandomDraws& random, uint64_t i) const {
      return low + (high - low) * random.Uniform(i);
    }
  };
  Draw Drawing() const { return {low, high}; }
};

struct NormalParam : SampleParam, Parameter<NormalParam> {
  double loc = 0, scale = 1;
  static void Declare(Fields<NormalParam>& f) {
    f.Add("loc", &NormalParam::loc).Default(0).Help("mean");
    f.Add("scale", &NormalParam::scale).Default(1).Range(0).Help("standard deviation");
    DeclareArray(f);
  }
  struct Draw {
    double loc, scale;
    MXTRAIN_HD double operator()(const RandomDraws& random, uint64_t i) const {
      return loc + scale * random.Normal(i);
    }
  };
  Draw Drawing() const { return {loc, scale}; }
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
    const TShape& asked = this->param_.shape;
    if (asked.ndim() > 0) UnifyShape(asked, &(*out)[0], name_, "shape");
    return (*out)[0].known();
  }
  bool InferType(std::vector<DType>*, std::vector<DType>* out, std::vector<DType>*) const override {
    const DType asked =
        this->param_.dtype.value_or((*out)[0] == DType::kUnknown ? DType::kFloat32 : (*out)[0]);
    if ((*out)[0] != DType::kUnknown && (*out)[0] != asked) {
      Throw(ErrorKind::kConfig, "{}: dtype is {}, but the output is {}", name_, NameOf(asked),
            NameOf((*out)[0]));
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

 private:
  const char* name_;
};

}  // namespace mxtrain::random_sample
