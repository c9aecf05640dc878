// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain::weighted {

bool InferTypes(const OperatorProperty& property, bool has_bias, std::vector<DType>* in,
                std::vector<DType>* out) {
  constexpr size_t kBias = 2;
  const auto narrow = [](DType type) {
    return type == DType::kBfloat16 || type == DType::kFloat16;
  };
  const bool wide_bias = has_bias && (*in)[kBias] == DType::kFloat32 &&
                         (narrow((*in)[0]) || narrow((*in)[1]) || narrow((*out)[0]));
  std::vector<DType> alike = *in, none;
  if (wide_bias) alike.erase(alike.begin() + kBias);
  const bool known = property.OperatorProperty::InferType(&alike, out, &none);
  if (wide_bias) alike.insert(alike.begin() + kBias, DType::kFloat32);
  *in = alike;
  return known;
}

Wanted::Wanted(const PlanRequest& request) {
  const auto want = [&](size_t i) {
    return request.needs_backward && i < request.grad_req.size() &&
           request.grad_req[i] != OpReqType::kNullOp;
  };
  data = want(0);
  weight = want(1);
  bias = want(2);
}

double ArithmeticCost(double products, int threads) {
  constexpr double kMultiplyAddsPerNanosecond = 25;  // per core
  return products / (kMultiplyAddsPerNanosecond * std::max(threads, 1));
}

double ArithmeticCost(const OperatorProperty& property, const PlanRequest& request) {
  const double products =
      property.ForwardFlops({request.in[0].shape, request.in[1].shape}, {request.out[0].shape});
  return ArithmeticCost(products, request.threads);
}

}  // namespace mxtrain::weighted
