// SPDX-License-Identifier: Apache-2.0
#pragma once
// cached_attention(query, key, value, position): causal attention token by token, as
// scaled_dot_product_attention with is_causal computes it over the whole sequence.
//
//   query, key   [batch, ..., tokens, depth]          value [batch, ..., tokens, value_depth],
//                heads of the query as there a multiple of those of key and value
//   position     [batch]
//   key_cache    [batch, ..., depth, padded window]   keys as columns: an auxiliary state
//   value_cache  [batch, ..., window, padded value_depth]
//
// The tokens of row r of the batch are those at position[r], position[r] + 1, ... of its sequence:
// their keys and values are written there into the caches, and each token sees what the caches hold
// up to its own position. So a sequence may come in pieces of any length, rows may be at different
// positions, and positions may be written again, which forgets what came after them. A row with a
// negative position rests: its caches stay and its output is 0. Tokens beyond the window have
// nowhere to go: they are not written, and their outputs are NaN.
//
// With sliding_window a token sees the last so many keys alone; the caches hold all.
//
// Nothing beyond the positions that were written is read as a number, so caches need no initial
// values. There is no gradient; use the operator without caches to train.
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/no_gradient.h"
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace mxtrain::cached_attention {

struct CachedAttentionParam : Parameter<CachedAttentionParam> {
  int64_t window;
  std::optional<int64_t> sliding_window;
  std::optional<double> scale;
  static void Declare(Fields<CachedAttentionParam>& f) {
    f.Add("window", &CachedAttentionParam::window)
        .Required()
        .Range(1, int64_t{1} << 30)
        .Help("tokens of a sequence that the caches hold");
    f.Add("sliding_window", &CachedAttentionParam::sliding_window)
        .Range(1, int64_t{1} << 40)
        .Default(std::nullopt)
        .Help("a token sees so many keys, its own the last of them; None: all up to its own");
    f.Add("scale", &CachedAttentionParam::scale)
        .Default(std::nullopt)
        .Help("factor of the scores; None: 1 / sqrt(depth)");
  }
};

// What kernels need to know of a call.
struct CachedSetup {
  attention::Extents extents;  // items: rows of the batch times heads; keys: the window
  int64_t heads = 1;           // items of a row
  int64_t padded_window = 0, padded_depth = 0;
  int64_t sliding_window = 0;  // 0: none
  double scale = 1;

  // The first key that a token sees.
  MXTRAIN_HD int64_t FirstKey(int64_t token) const {
    return sliding_window > 0 && token >= sliding_window ? token + 1 - sliding_window : 0;
  }
};

class CachedAttentionProperty final : public PropertyWithoutGradient<CachedAttentionParam> {
 public:
  enum Argument { kQuery, kKey, kValue, kPosition };
  enum State { kKeyCache, kValueCache };

  std::string TypeString() const override { return "cached_attention"; }
  std::string Description() const override {
    return "causal attention of the next tokens, which keeps the keys and values of earlier ones";
  }
  std::vector<std::string> ListArguments() const override {
    return {"query", "key", "value", "position"};
  }
  std::vector<std::string> ListAuxiliaryStates() const override {
    return {"key_cache", "value_cache"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  // For arrays of known shapes.
  MXTRAIN_API CachedSetup Prepare(const PlanRequest& request) const;
};

}  // namespace mxtrain::cached_attention
