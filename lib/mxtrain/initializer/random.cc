// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/philox.h"
#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

// Of the random stream: parameters are initialized before the first step.
constexpr uint64_t kStep = 0;

struct UniformParam : Parameter<UniformParam> {
  double scale;
  static void Declare(Fields<UniformParam>& f) {
    f.Add("scale", &UniformParam::scale)
        .Default(0.07)
        .Range(0)
        .Help("values lie in [-scale, scale)");
  }
};

struct NormalParam : Parameter<NormalParam> {
  double sigma;
  static void Declare(Fields<NormalParam>& f) {
    f.Add("sigma", &NormalParam::sigma).Default(0.01).Range(0).Help("standard deviation");
  }
};

class Uniform final : public Initializer {
 public:
  explicit Uniform(double scale) : scale_(scale) {}
  void Initialize(const std::string& name, uint64_t seed, NDArray* array) const override {
    InitializeUniform(name, seed, scale_, array);
  }

 private:
  const double scale_;
};

class Normal final : public Initializer {
 public:
  explicit Normal(double sigma) : sigma_(sigma) {}
  void Initialize(const std::string& name, uint64_t seed, NDArray* array) const override {
    InitializeNormal(name, seed, sigma_, array);
  }

 private:
  const double sigma_;
};

}  // namespace

void InitializeUniform(const std::string& name, uint64_t seed, double scale, NDArray* array) {
  InitializeElements(
      name, array, [seed, stream = StreamOf(name), scale = static_cast<float>(scale)](int64_t i) {
        return scale * (2 * UniformAt(seed, stream, kStep, static_cast<uint64_t>(i)) - 1);
      });
}

void InitializeNormal(const std::string& name, uint64_t seed, double scale, NDArray* array) {
  InitializeElements(name, array,
                     [seed, stream = StreamOf(name), scale = static_cast<float>(scale)](int64_t i) {
                       return scale * NormalAt(seed, stream, kStep, static_cast<uint64_t>(i));
                     });
}

std::unique_ptr<Initializer> NewUniform(const Kwargs& kwargs) {
  UniformParam param;
  param.Init(kwargs, "initializer uniform");
  return std::make_unique<Uniform>(param.scale);
}
std::unique_ptr<Initializer> NewNormal(const Kwargs& kwargs) {
  NormalParam param;
  param.Init(kwargs, "initializer normal");
  return std::make_unique<Normal>(param.sigma);
}
std::vector<FieldInfo> DescribeUniform() {
  return UniformParam::Describe();
}
std::vector<FieldInfo> DescribeNormal() {
  return NormalParam::Describe();
}

}  // namespace mxtrain
