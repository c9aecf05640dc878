// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/cached_attention/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_kernels.h"

namespace mxtrain::cached_attention {

bool CachedAttentionProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                         std::vector<TShape>* aux) const {
  const TShape &query = (*in)[kQuery], &key = (*in)[kKey], &value = (*in)[kValue];
  if (!query.known() || !key.known() || !value.known()) return false;
  const int n = query.ndim();
  TShape one_each = query;  // of the keys' heads
  const bool shared = n > 3 && key.ndim() == n && key[n - 3] > 0 && query[n - 3] % key[n - 3] == 0;
  if (shared) one_each[n - 3] = key[n - 3];
  const bool fits = n >= 3 && key == one_each && value.ndim() == n &&
                    std::equal(key.begin(), key.begin() + (n - 1), value.begin());
  if (!fits) {
    Throw(ErrorKind::kConfig,
          "{}: query {} and key {} must have one shape, [batch, heads, tokens, depth], or the "
          "query a multiple of the heads, and value {} the axes of the key but the last",
          TypeString(), query.ToString(), key.ToString(), value.ToString());
  }
  if (query[n - 2] > param_.window) {
    Throw(ErrorKind::kConfig, "{}: {} tokens do not fit into a window of {}", TypeString(),
          query[n - 2], param_.window);
  }
  UnifyShape({query[0]}, &(*in)[kPosition], TypeString(), "position");
  TShape keys = key, values = value, result = query;
  keys[n - 2] = query[n - 1];
  keys[n - 1] = RoundUp(param_.window, attention::kPadding);
  values[n - 2] = param_.window;
  values[n - 1] = RoundUp(value[n - 1], attention::kPadding);
  UnifyShape(keys, &(*aux)[kKeyCache], TypeString(), "key_cache");
  UnifyShape(values, &(*aux)[kValueCache], TypeString(), "value_cache");
  result[n - 1] = value[n - 1];
  UnifyShape(result, &(*out)[0], TypeString(), "output");
  return true;
}

bool CachedAttentionProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                        std::vector<DType>* aux) const {
  std::vector<DType> arrays(in->begin(), in->begin() + kPosition);
  const bool known = OperatorProperty::InferType(&arrays, out, aux);
  std::copy(arrays.begin(), arrays.end(), in->begin());
  if (DType& position = (*in)[kPosition]; position == DType::kUnknown) position = DType::kFloat32;
  return known;
}

double CachedAttentionProperty::ForwardFlops(const std::vector<TShape>& in,
                                             const std::vector<TShape>&) const {
  const TShape &query = in[kQuery], &value = in[kValue];
  const int n = query.ndim();
  return static_cast<double>(query.Product(0, n - 1)) * static_cast<double>(param_.window) *
         static_cast<double>(query[n - 1] + value[n - 1]);
}

CachedSetup CachedAttentionProperty::Prepare(const PlanRequest& request) const {
  const TShape &query = request.in[kQuery].shape, &value = request.in[kValue].shape;
  const int n = query.ndim();
  CachedSetup setup;
  setup.extents = {query.Product(0, n - 2),
                   query[n - 2],
                   param_.window,
                   query[n - 1],
                   value[n - 1],
                   n > 3 && value[n - 3] > 0 ? query[n - 3] / value[n - 3] : 1};
  setup.heads = query.Product(1, n - 2);
  setup.padded_window = RoundUp(param_.window, attention::kPadding);
  setup.padded_depth = RoundUp(value[n - 1], attention::kPadding);
  setup.sliding_window = param_.sliding_window.value_or(0);
  setup.scale =
      param_.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(query[n - 1], 1))));
  return setup;
}

}  // namespace mxtrain::cached_attention

MXTRAIN_OPERATOR(cached_attention, registry) {
  using mxtrain::cached_attention::CachedAttentionProperty;
  registry.AddProperty("cached_attention", {},
                       [] { return std::make_unique<CachedAttentionProperty>(); });
}
