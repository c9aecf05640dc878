// SPDX-License-Identifier: Apache-2.0
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// AISTATS 2010; with slope: He et al., "Delving deep into rectifiers", ICCV 2015.
#include <cmath>

#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

enum RandomType { kUniform, kGaussian };
enum FactorType { kAverage, kIn, kOut };

struct XavierParam : Parameter<XavierParam> {
  int rnd_type, factor_type;
  double magnitude;
  static void Declare(Fields<XavierParam>& f) {
    f.Add("rnd_type", &XavierParam::rnd_type)
        .Enum({{"uniform", kUniform}, {"gaussian", kGaussian}})
        .Default(kUniform);
    f.Add("factor_type", &XavierParam::factor_type)
        .Enum({{"avg", kAverage}, {"in", kIn}, {"out", kOut}})
        .Default(kAverage)
        .Help("which fan divides the magnitude");
    f.Add("magnitude", &XavierParam::magnitude)
        .Default(3)
        .Range(0)
        .Help("scale = sqrt(magnitude / fan)");
  }
};

struct MsraPreluParam : Parameter<MsraPreluParam> {
  int factor_type;
  double slope;
  static void Declare(Fields<MsraPreluParam>& f) {
    f.Add("factor_type", &MsraPreluParam::factor_type)
        .Enum({{"avg", kAverage}, {"in", kIn}, {"out", kOut}})
        .Default(kAverage);
    f.Add("slope", &MsraPreluParam::slope)
        .Default(0.25)
        .Help("first slope of the PReLU that follows; 0 for ReLU");
  }
};

class Xavier final : public Initializer {
 public:
  Xavier(int rnd_type, int factor_type, double magnitude)
      : rnd_type_(rnd_type), factor_type_(factor_type), magnitude_(magnitude) {}

  // For shape (o, i, k...): fan in = i * k..., fan out = o * k...
  void Initialize(const std::string& name, uint64_t seed, NDArray* array) const override {
    const TShape& shape = array->shape();
    if (shape.ndim() < 2) {
      Throw(ErrorKind::kConfig,
            "xavier needs an array of two dimensions or more to know its fans; '{}' has shape {}; "
            "declare another init",
            name, shape.ToString());
    }
    const auto kernel = static_cast<double>(shape.Product(2, shape.ndim()));
    const double fan_in = static_cast<double>(shape[1]) * kernel,
                 fan_out = static_cast<double>(shape[0]) * kernel;
    const double factor = factor_type_ == kIn    ? fan_in
                          : factor_type_ == kOut ? fan_out
                                                 : (fan_in + fan_out) / 2;
    // Nothing to scale without elements.
    const double scale = factor > 0 ? std::sqrt(magnitude_ / factor) : 0;
    if (rnd_type_ == kUniform) {
      InitializeUniform(name, seed, scale, array);
    } else {
      InitializeNormal(name, seed, scale, array);
    }
  }

 private:
  const int rnd_type_, factor_type_;
  const double magnitude_;
};

}  // namespace

std::unique_ptr<Initializer> NewXavier(const Kwargs& kwargs) {
  XavierParam param;
  param.Init(kwargs, "initializer xavier");
  return std::make_unique<Xavier>(param.rnd_type, param.factor_type, param.magnitude);
}
std::unique_ptr<Initializer> NewMsraPrelu(const Kwargs& kwargs) {
  MsraPreluParam param;
  param.Init(kwargs, "initializer msra_prelu");
  return std::make_unique<Xavier>(kGaussian, param.factor_type,
                                  2 / (1 + param.slope * param.slope));
}
std::vector<FieldInfo> DescribeXavier() {
  return XavierParam::Describe();
}
std::vector<FieldInfo> DescribeMsraPrelu() {
  return MsraPreluParam::Describe();
}

}  // namespace mxtrain
