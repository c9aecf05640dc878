// SPDX-License-Identifier: Apache-2.0
// Cast between float32 and the 16-bit floating types over stored elements. Compiled once per
// instruction set; the best supported set is selected at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/cast/cast_simd_cpu.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/softmax/row_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;

template <typename To, typename From>
HWY_INLINE void ConvertTo(const void* from, void* to, int64_t n, bool accumulate) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<To>(static_cast<float>(y[i]) + static_cast<float>(static_cast<To>(x[i])));
    return;
  }
  ForVectors(0, n, [&](auto whole, int64_t k, int64_t count) {
    Write<whole()>(Read<whole()>(x + k, count), y + k, count);
  });
}

// Run-time selection needs names without angle brackets.
void WidenHalf(const void* x, void* y, int64_t n, bool accumulate) {
  ConvertTo<float, float16>(x, y, n, accumulate);
}
void NarrowToHalf(const void* x, void* y, int64_t n, bool accumulate) {
  ConvertTo<float16, float>(x, y, n, accumulate);
}
void WidenBfloat(const void* x, void* y, int64_t n, bool accumulate) {
  ConvertTo<float, bfloat16>(x, y, n, accumulate);
}
void NarrowToBfloat(const void* x, void* y, int64_t n, bool accumulate) {
  ConvertTo<bfloat16, float>(x, y, n, accumulate);
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/cast/cast.h"

namespace mxtrain {
HWY_EXPORT(WidenHalf);
HWY_EXPORT(NarrowToHalf);
HWY_EXPORT(WidenBfloat);
HWY_EXPORT(NarrowToBfloat);

namespace {

void ConvertElements(DType from, DType to, const void* x, void* y, int64_t n, bool accumulate) {
  if (from == DType::kFloat16) {
    HWY_DYNAMIC_DISPATCH(WidenHalf)(x, y, n, accumulate);
  } else if (from == DType::kBfloat16) {
    HWY_DYNAMIC_DISPATCH(WidenBfloat)(x, y, n, accumulate);
  } else if (to == DType::kFloat16) {
    HWY_DYNAMIC_DISPATCH(NarrowToHalf)(x, y, n, accumulate);
  } else {
    HWY_DYNAMIC_DISPATCH(NarrowToBfloat)(x, y, n, accumulate);
  }
}

void Convert(const TBlob& from, const TBlob& to, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  const auto* x = static_cast<const char*>(from.data);
  auto* y = static_cast<char*>(to.data);
  ParallelFor(to.StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
    ConvertElements(from.type, to.type, x + begin * SizeOf(from.type), y + begin * SizeOf(to.type),
                    end - begin, req == OpReqType::kAddTo);
  });
}

class CastSimd final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    Convert(args.in_data[0], args.out_data[0], args.req[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Convert(args.out_grad[0], args.in_grad[0], args.req[0]);
  }
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  const DType from = request.in[0].type, to = request.out[0].type;
  const auto narrow = [](DType type) {
    return type == DType::kFloat16 || type == DType::kBfloat16;
  };
  if (!(from == DType::kFloat32 && narrow(to)) && !(narrow(from) && to == DType::kFloat32))
    return Refusal{"between float32 and a 16-bit floating type only"};
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<CastSimd>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(cast_simd_cpu, registry) {
  registry.AddKernel({"Cast", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::PlanSimd});
}
#endif  // HWY_ONCE
