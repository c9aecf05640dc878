// SPDX-License-Identifier: Apache-2.0
// cached_attention of float32 by vectors: the blocks of scaled_dot_product_attention, whose packed
// keys and values are the caches themselves. A thread takes the items that share a cache, so
// results do not depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/cached_attention/cached_attention.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_blocks.h"

namespace mxtrain::cached_attention {
namespace {

using attention::Blocks;
using attention::Extents;
using attention::kNever;
using P = CachedAttentionProperty;

// What a thread keeps of a block of queries.
struct QuerySpace {
  float *query, *scores, *mask, *means, *largest, *sum, *rescale;
  QuerySpace(const Blocks& b, attention::Space* space)
      : query(space->Take(b.queries * b.depth)),
        scores(space->Take(b.scores())),
        mask(space->Take(b.scores())),
        means(space->Take(b.queries * b.value_depth)),
        largest(space->Take(b.queries)),
        sum(space->Take(b.queries)),
        rescale(space->Take(b.queries)) {}
};
int64_t FloatsOf(const Blocks& blocks) {
  attention::Space space(nullptr);
  QuerySpace(blocks, &space);
  return space.taken();
}

class CachedAttentionSimd final : public Operator {
 public:
  explicit CachedAttentionSimd(const CachedSetup& setup)
      : setup_(setup), e_(setup_.extents), blocks_(e_) {}

  void Forward(const ForwardArgs& args) override {
    const int64_t floats = FloatsOf(blocks_);
    const NumberReader position(args.in_data[P::kPosition]);
    ParallelForPieces(e_.key_items(), 1, [&](int64_t begin, int64_t end, int piece) {
      attention::Space space(args.ctx.workspace.dptr<float>() + piece * floats);
      const QuerySpace s(blocks_, &space);
      for (int64_t key_item = begin; key_item < end; ++key_item)
        ForwardKeys(args, key_item, position.Index(key_item * e_.group / setup_.heads), s);
    });
  }

 private:
  // The caches of an item of keys, and the output of an item.
  struct Arrays {
    float *keys, *values, *out;
  };

  // The items that share these keys.
  void ForwardKeys(const ForwardArgs& args, int64_t key_item, int64_t first,
                   const QuerySpace& s) const {
    Arrays a{
        args.aux_states[P::kKeyCache].dptr<float>() + key_item * e_.depth * blocks_.all_keys,
        args.aux_states[P::kValueCache].dptr<float>() + key_item * e_.keys * blocks_.value_depth,
        nullptr};
    const int64_t tokens =
        first < 0 || first >= e_.keys ? 0 : std::min(e_.queries, e_.keys - first);
    Append(args, key_item, first, tokens, a);
    if (args.req[0] == OpReqType::kNullOp) return;
    for (int64_t item = key_item * e_.group; item < (key_item + 1) * e_.group; ++item) {
      a.out = args.out_data[0].dptr<float>() + item * e_.queries * e_.value_depth;
      ForwardItem(args, item, first, tokens, a, s);
    }
  }

  void ForwardItem(const ForwardArgs& args, int64_t item, int64_t first, int64_t tokens,
                   const Arrays& a, const QuerySpace& s) const {
    const int64_t out_size = e_.queries * e_.value_depth;
    const float* query = args.in_data[P::kQuery].dptr<float>() + item * e_.queries * e_.depth;
    for (int64_t q = 0; q < tokens; q += blocks_.queries)
      ForwardBlock(args.req[0], query, first, q, std::min(blocks_.queries, tokens - q), a, s);
    const float unseen = first < 0 ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = tokens * e_.value_depth; i < out_size; ++i)
      Assign(args.req[0], a.out, i, unseen);
  }

  void Append(const ForwardArgs& args, int64_t key_item, int64_t first, int64_t tokens,
              const Arrays& a) const {
    const float* key = args.in_data[P::kKey].dptr<float>() + key_item * e_.queries * e_.depth;
    for (int64_t d = 0; d < e_.depth; ++d) {
      float* row = a.keys + d * blocks_.all_keys + first;
      for (int64_t t = 0; t < tokens; ++t) row[t] = key[t * e_.depth + d];
    }
    if (tokens == 0) return;
    attention::Pack(args.in_data[P::kValue].dptr<float>() + key_item * e_.queries * e_.value_depth,
                    tokens, e_.value_depth, 1, blocks_.value_depth,
                    a.values + first * blocks_.value_depth);
  }

  // Of the tokens [query, query + queries).
  void ForwardBlock(OpReqType req, const float* from, int64_t first, int64_t query, int64_t queries,
                    const Arrays& a, const QuerySpace& s) const {
    attention::Pack(from + query * e_.depth, queries, e_.depth, static_cast<float>(setup_.scale),
                    blocks_.depth, s.query);
    std::fill_n(s.means, queries * blocks_.value_depth, 0.0F);
    std::fill_n(s.largest, queries, kNever);
    std::fill_n(s.sum, queries, 0.0F);
    const int64_t at = first + query, seen = at + queries,
                  begin = setup_.FirstKey(at) / blocks_.keys * blocks_.keys;
    for (int64_t key = begin; key < seen; key += blocks_.keys) {
      const int64_t keys = std::min(blocks_.keys, seen - key);
      kernels_.multiply({queries, RoundUp(keys, attention::kPadding), e_.depth, s.query,
                         blocks_.depth, 1, a.keys + key, blocks_.all_keys, s.scores, blocks_.keys,
                         false});
      attention::ScoreBlock block{queries, keys, blocks_.keys};
      if (at + 1 < key + keys || setup_.FirstKey(seen - 1) > key) {
        Hide(at, queries, key, keys, s.mask);
        block.mask = s.mask;
      }
      kernels_.soften(block, s.scores, s.largest, s.sum, s.rescale);
      for (int64_t q = 0; q < queries && key > begin; ++q) Scale(s.rescale[q], s.means, q);
      kernels_.multiply({queries, blocks_.value_depth, keys, s.scores, blocks_.keys, 1,
                         a.values + key * blocks_.value_depth, blocks_.value_depth, s.means,
                         blocks_.value_depth, true});
    }
    for (int64_t q = 0; q < queries; ++q) Scale(1 / s.sum[q], s.means, q);
    attention::Unpack(s.means, queries, e_.value_depth, blocks_.value_depth, 1, req,
                      a.out + query * e_.value_depth);
  }

  // The mask of a block whose first query is the token `at`.
  void Hide(int64_t at, int64_t queries, int64_t key, int64_t keys, float* mask) const {
    const auto within = [=](int64_t k) { return std::clamp<int64_t>(k - key, 0, keys); };
    for (int64_t q = 0; q < queries; ++q) {
      float* row = mask + q * blocks_.keys;
      const int64_t first = within(setup_.FirstKey(at + q)), end = within(at + q + 1);
      std::fill_n(row, first, kNever);
      std::fill(row + first, row + end, 0.0F);
      std::fill(row + end, row + keys, kNever);
    }
  }
  void Scale(float factor, float* means, int64_t q) const {
    float* row = means + q * blocks_.value_depth;
    for (int64_t k = 0; k < blocks_.value_depth; ++k) row[k] *= factor;
  }

  const CachedSetup setup_;
  const Extents e_;
  const Blocks blocks_;
  const attention::Kernels& kernels_ = attention::BlockKernels();
};

Expected<Plan, Refusal> PlanCachedSimd(const OperatorProperty& base, const PlanRequest& request,
                                       Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
  if (request.out[0].shape.Size() == 0 || request.in[0].shape.Size() == 0)
    return Refusal{"empty array"};
  const CachedSetup setup = static_cast<const CachedAttentionProperty&>(base).Prepare(request);
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = std::max(request.threads, 1) * FloatsOf(Blocks(setup.extents)) *
                           static_cast<int64_t>(sizeof(float));
  plan.make = [setup] { return std::make_unique<CachedAttentionSimd>(setup); };
  return plan;
}

}  // namespace
}  // namespace mxtrain::cached_attention

MXTRAIN_OPERATOR(cached_attention_simd_cpu, registry) {
  registry.AddKernel({"cached_attention", mxtrain::DeviceType::kCPU, "simd", 100,
                      mxtrain::cached_attention::PlanCachedSimd});
}
