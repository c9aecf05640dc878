// SPDX-License-Identifier: Apache-2.0
#pragma once
// The initializers known to the factory and their shared code. Private to this module.
#include <utility>

#include "mxtrain/initializer/initializer.h"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

std::unique_ptr<Initializer> NewZero(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewOne(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewConstant(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewUniform(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewNormal(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewXavier(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewMsraPrelu(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewOrthogonal(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewBilinear(const Kwargs& kwargs);
std::unique_ptr<Initializer> NewFusedRnn(const Kwargs& kwargs);
std::vector<FieldInfo> DescribeConstant();
std::vector<FieldInfo> DescribeUniform();
std::vector<FieldInfo> DescribeNormal();
std::vector<FieldInfo> DescribeXavier();
std::vector<FieldInfo> DescribeMsraPrelu();
std::vector<FieldInfo> DescribeOrthogonal();
std::vector<FieldInfo> DescribeFusedRnn();

// Sets element i, in row-major order, to value(i). `value` runs on the CPU's compute lane and must
// be safe to call from several threads at once.
template <typename Value>
void InitializeElements(const std::string& name, NDArray* array, Value value) {
  const bool direct = array->layout().plain() && array->ctx().type != DeviceType::kGPU;
  NDArray plain = direct ? *array
                         : NDArray(array->runtime(), array->shape(), array->dtype(), Context::cpu(),
                                   {}, array->who());
  SwitchFloating(array->dtype(), name.c_str(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const engine::VarHandle writes[] = {plain.var()};
    plain.runtime().engine().PushSync(
        [out = plain.data().dptr<T>(), n = plain.shape().Size(),
         value = std::move(value)](RunContext ctx) {
          Launch(ctx, n, [out, &value](int64_t i) { out[i] = static_cast<T>(value(i)); });
        },
        {}, writes, {.ctx = plain.ctx(), .name = "Initialize"});
  });
  if (!direct) array->CopyFrom(plain);
}

// Independent draws: uniform in [-scale, scale), or normal with standard deviation `scale`.
void InitializeUniform(const std::string& name, uint64_t seed, double scale, NDArray* array);
void InitializeNormal(const std::string& name, uint64_t seed, double scale, NDArray* array);

}  // namespace mxtrain
