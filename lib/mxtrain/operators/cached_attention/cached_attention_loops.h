// SPDX-License-Identifier: Apache-2.0
#pragma once
// cached_attention, written once for all devices: the caches take the new keys and values, a team
// computes the probabilities of a query, a thread an element of the output.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/cached_attention/cached_attention.h"

namespace mxtrain::cached_attention {

// Where the tokens of an item are in its sequence.
struct TokenPlaces {
  CachedSetup s;
  NumberReader position;
  MXTRAIN_HD int64_t First(int64_t item) const { return position.Index(item / s.heads); }
  MXTRAIN_HD int64_t FirstOfKeys(int64_t key_item) const {
    return First(key_item * s.extents.group);
  }
  // Of a token that is seen: neither of a row that rests nor beyond the window.
  MXTRAIN_HD bool Has(int64_t first, int64_t token) const {
    return first >= 0 && first < s.extents.keys && first + token < s.extents.keys;
  }
};

// Element i of the new keys, or of the new values, to its cache.
template <typename T>
struct WriteKey {
  TokenPlaces at;
  const T* key;
  T* cache;
  MXTRAIN_HD void operator()(int64_t i) const {
    const attention::Extents& e = at.s.extents;
    const int64_t depth = i % e.depth, row = i / e.depth, token = row % e.queries,
                  item = row / e.queries, first = at.FirstOfKeys(item);
    if (!at.Has(first, token)) return;
    cache[(item * e.depth + depth) * at.s.padded_window + first + token] = key[i];
  }
};
template <typename T>
struct WriteValue {
  TokenPlaces at;
  const T* value;
  T* cache;
  MXTRAIN_HD void operator()(int64_t i) const {
    const attention::Extents& e = at.s.extents;
    const int64_t depth = i % e.value_depth, row = i / e.value_depth, token = row % e.queries,
                  item = row / e.queries, first = at.FirstOfKeys(item);
    if (!at.Has(first, token)) return;
    cache[(item * e.keys + first + token) * at.s.padded_depth + depth] = value[i];
  }
};

// probabilities [items, queries, window] of the keys that a query sees.
template <typename T>
struct ProbabilityRow {
  using A = AccumulatorOf<T>;
  TokenPlaces at;
  const T *query, *keys;
  A* probabilities;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const attention::Extents& e = at.s.extents;
    const int64_t item = row / e.queries, token = row % e.queries, first = at.First(item);
    if (!at.Has(first, token)) return;
    const int64_t seen = first + token + 1, begin = at.s.FirstKey(first + token) + team.rank();
    const T *x = query + row * e.depth,
            *across = keys + e.KeyItem(item) * e.depth * at.s.padded_window;
    A* p = probabilities + row * e.keys;
    A largest = -std::numeric_limits<A>::infinity();
    for (int64_t k = begin; k < seen; k += team.size()) {
      A score = 0;
      for (int64_t d = 0; d < e.depth; ++d)
        score += A(x[d]) * A(across[d * at.s.padded_window + k]);
      p[k] = score * static_cast<A>(at.s.scale);
      largest = p[k] > largest ? p[k] : largest;
    }
    largest = team.Fold(largest, LargerOf{});
    A sum = 0;
    for (int64_t k = begin; k < seen; k += team.size()) {
      p[k] = std::exp(p[k] - largest);
      sum += p[k];
    }
    sum = team.Fold(sum, AddBoth{});
    for (int64_t k = begin; k < seen; k += team.size()) p[k] /= sum;
  }
};

template <typename T>
struct MeanOfValues {
  using A = AccumulatorOf<T>;
  TokenPlaces at;
  const A* probabilities;
  const T* values;
  T* out;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i) const {
    const attention::Extents& e = at.s.extents;
    const int64_t depth = i % e.value_depth, row = i / e.value_depth, token = row % e.queries,
                  item = row / e.queries, first = at.First(item);
    A mean = 0;
    if (at.Has(first, token)) {
      const A* p = probabilities + row * e.keys;
      const T* column = values + e.KeyItem(item) * e.keys * at.s.padded_depth + depth;
      for (int64_t k = at.s.FirstKey(first + token); k <= first + token; ++k)
        mean += p[k] * A(column[k * at.s.padded_depth]);
    } else if (first >= 0) {
      mean = std::numeric_limits<A>::quiet_NaN();
    }
    Assign(req, out, i, mean);
  }
};

template <typename Device>
class CachedAttention final : public Operator {
  using P = CachedAttentionProperty;

 public:
  explicit CachedAttention(const CachedSetup& setup) : setup_(setup) {}
  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.out_data[0].type, "cached_attention",
                   [&](auto tag) { ForwardOf<typename decltype(tag)::type>(args); });
  }

 private:
  template <typename T>
  void ForwardOf(const ForwardArgs& args) const {
    using A = AccumulatorOf<T>;
    const Device device{args.ctx.run_ctx};
    const attention::Extents& e = setup_.extents;
    const int64_t rows = e.items * e.queries, key_rows = e.key_items() * e.queries;
    const TokenPlaces at{setup_, NumberReader(args.in_data[P::kPosition])};
    T *keys = args.aux_states[P::kKeyCache].template dptr<T>(),
      *values = args.aux_states[P::kValueCache].template dptr<T>();
    Launch(device, key_rows * e.depth,
           WriteKey<T>{at, args.in_data[P::kKey].template dptr<T>(), keys});
    Launch(device, key_rows * e.value_depth,
           WriteValue<T>{at, args.in_data[P::kValue].template dptr<T>(), values});
    if (args.req[0] == OpReqType::kNullOp) return;
    A* probabilities = args.ctx.workspace.template dptr<A>();
    ForRows(device, rows, e.keys,
            ProbabilityRow<T>{at, args.in_data[P::kQuery].template dptr<T>(), keys, probabilities});
    Launch(device, rows * e.value_depth,
           MeanOfValues<T>{at, probabilities, values, args.out_data[0].template dptr<T>(),
                           args.req[0]});
  }

  const CachedSetup setup_;
};

template <typename Device>
Expected<Plan, Refusal> PlanLoops(const OperatorProperty& base, const PlanRequest& request,
                                  Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  const CachedSetup setup = static_cast<const CachedAttentionProperty&>(base).Prepare(request);
  const attention::Extents& e = setup.extents;
  Plan plan = PlainPlan(base, request);
  const int64_t number = request.in[0].type == DType::kFloat64 ? sizeof(double) : sizeof(float);
  plan.forward_workspace = e.items * e.queries * e.keys * number;
  plan.make = [setup] { return std::make_unique<CachedAttention<Device>>(setup); };
  return plan;
}

}  // namespace mxtrain::cached_attention

MXTRAIN_KERNELS(cached_attention, Device, registry) {
  registry.AddKernel(mxtrain::LastKernel<Device>("cached_attention",
                                                 mxtrain::cached_attention::PlanLoops<Device>));
}
