// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

struct ConstantParam : Parameter<ConstantParam> {
  double value;
  static void Declare(Fields<ConstantParam>& f) {
    f.Add("value", &ConstantParam::value).Required().Help("value of every element");
  }
};

class Constant final : public Initializer {
 public:
  explicit Constant(double value) : value_(value) {}
  void Initialize(const std::string&, uint64_t, NDArray* array) const override {
    array->Fill(value_);
  }

 private:
  const double value_;
};

std::unique_ptr<Initializer> NewFixed(const Kwargs& kwargs, const char* owner, double value) {
  NoParam().Init(kwargs, owner);
  return std::make_unique<Constant>(value);
}

}  // namespace

std::unique_ptr<Initializer> NewZero(const Kwargs& kwargs) {
  return NewFixed(kwargs, "initializer zero", 0);
}
std::unique_ptr<Initializer> NewOne(const Kwargs& kwargs) {
  return NewFixed(kwargs, "initializer one", 1);
}

std::unique_ptr<Initializer> NewConstant(const Kwargs& kwargs) {
  ConstantParam param;
  param.Init(kwargs, "initializer constant");
  return std::make_unique<Constant>(param.value);
}
std::vector<FieldInfo> DescribeConstant() {
  return ConstantParam::Describe();
}

}  // namespace mxtrain
