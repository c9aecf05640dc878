// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention of float32, bfloat16 and float16 by vectors, in float.
//
// A thread takes an item, or in forward some of its queries, packs keys and values as floats in the
// order in which the products of blocks (attention_kernels.h) read them, and goes through the
// scores block by block. In backward a task is the items that share keys, or, for the gradient of a
// mask, all items that add to one slice of it. The blocks follow from the shapes, so results do not
// depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/uniform_block.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_blocks.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_kernels.h"
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace mxtrain::attention {
namespace {

using P = AttentionProperty;

static_assert(kMostKeys <= kUniformBlock);

// What both passes keep of a block of scores.
struct ScoreSpace {
  float *query, *scores, *mask, *factors;
  ScoreSpace(const AttentionSetup& s, const Blocks& b, Space* space)
      : query(space->Take(b.queries * b.depth)),
        scores(space->Take(b.scores())),
        mask(s.hides() ? space->Take(b.scores()) : nullptr),
        factors(s.drops ? space->Take(b.scores()) : nullptr) {}
};
struct ForwardSpace : ScoreSpace {
  float *keys_across, *values;  // [depth, all_keys], [keys, value_depth]
  float *means, *largest, *sum, *rescale;
  ForwardSpace(const AttentionSetup& s, const Blocks& b, Space* space)
      : ScoreSpace(s, b, space),
        keys_across(space->Take(s.extents.depth * b.all_keys)),
        values(space->Take(s.extents.keys * b.value_depth)),
        means(space->Take(b.queries * b.value_depth)),
        largest(space->Take(b.queries)),
        sum(space->Take(b.queries)),
        rescale(space->Take(b.queries)) {}
};
struct BackwardSpace : ScoreSpace {
  float *keys_across, *keys, *values_across;  // [depth, all_keys], [keys, depth], [v., all_keys]
  float *key_grad, *value_grad;               // [keys, depth], [keys, value_depth]
  float *head, *slopes, *query_grad, *mean;
  BackwardSpace(const AttentionSetup& s, const Blocks& b, Space* space)
      : ScoreSpace(s, b, space),
        keys_across(space->Take(s.extents.depth * b.all_keys)),
        keys(space->Take(s.extents.keys * b.depth)),
        values_across(space->Take(s.extents.value_depth * b.all_keys)),
        key_grad(space->Take(s.extents.keys * b.depth)),
        value_grad(space->Take(s.extents.keys * b.value_depth)),
        head(space->Take(b.queries * b.value_depth)),
        slopes(space->Take(b.scores())),
        query_grad(space->Take(b.queries * b.depth)),
        mean(space->Take(b.queries)) {}
};
template <typename S>
int64_t FloatsOf(const AttentionSetup& setup) {
  Space space(nullptr);
  S(setup, BlocksOf(setup), &space);
  return space.taken();
}

// A block of queries [query, query + queries) and keys [key, key + keys) of an item.
struct Place {
  int64_t item = 0, query = 0, queries = 0, key = 0, keys = 0;
};

template <typename T>
class AttentionSimd final : public Operator {
 public:
  AttentionSimd(std::shared_ptr<const AttentionSetup> setup, int64_t threads)
      : setup_(std::move(setup)),
        e_(setup_->extents),
        blocks_(BlocksOf(*setup_)),
        threads_(threads) {}

  void Forward(const ForwardArgs& args) override {
    constexpr int64_t kTasksPerThread = 4;
    const int64_t chunks =
        std::clamp<int64_t>(CeilDivide(kTasksPerThread * threads_, e_.items), 1, blocks_.count);
    const int64_t floats = FloatsOf<ForwardSpace>(*setup_);
    seen_ = SeenKeys(*setup_, args.in_data, args.ctx.workspace.dptr<float>() + threads_ * floats);
    ParallelForPieces(e_.items * chunks, 1, [&](int64_t begin, int64_t end, int piece) {
      Space space(args.ctx.workspace.dptr<float>() + piece * floats);
      const ForwardSpace s(*setup_, blocks_, &space);
      int64_t packed = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t item = task / chunks, chunk = task % chunks;
        const int64_t key_item = e_.KeyItem(item);
        if (std::exchange(packed, key_item) != key_item) {
          PackAcross(Item(args.in_data[P::kKey], key_item, e_.keys * e_.depth), e_.keys, e_.depth,
                     blocks_.all_keys, s.keys_across);
          Pack(Item(args.in_data[P::kValue], key_item, e_.keys * e_.value_depth), e_.keys,
               e_.value_depth, 1, blocks_.value_depth, s.values);
        }
        const int64_t last = blocks_.count * (chunk + 1) / chunks;
        for (int64_t k = blocks_.count * chunk / chunks; k < last; ++k)
          ForwardBlock(args, item, k * blocks_.queries, s);
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    const MaskView& m = setup_->mask;
    const bool wants_mask = m.kind == kAdditiveMask && args.req[P::kMask] != OpReqType::kNullOp;
    const int64_t floats = FloatsOf<BackwardSpace>(*setup_);
    float* workspace = args.ctx.workspace.dptr<float>();
    float* mask_grad = wants_mask ? workspace + threads_ * floats : nullptr;
    seen_ = SeenKeys(*setup_, args.in_data, workspace + threads_ * floats);
    if (wants_mask) std::fill_n(mask_grad, m.slices * m.slice_size, 0.0f);
    ParallelForPieces(setup_->BackwardTasks(wants_mask), 1,
                      [&](int64_t begin, int64_t end, int piece) {
                        Space space(workspace + piece * floats);
                        const BackwardSpace s(*setup_, blocks_, &space);
                        for (int64_t task = begin; task < end; ++task) {
                          setup_->ForKeyItems(wants_mask, task, [&](int64_t key_item) {
                            BackwardKeys(args, key_item, s, mask_grad);
                          });
                        }
                      });
    if (!wants_mask) return;
    SwitchFloating(args.in_grad[P::kMask].type, "attn_mask", [&](auto tag) {
      using M = typename decltype(tag)::type;
      Map<M>(args.ctx.run_ctx, args.in_grad[P::kMask], args.req[P::kMask],
             ElementAt<float, float>{mask_grad});
    });
  }

 private:
  static T* Item(const TBlob& array, int64_t item, int64_t size) {
    return array.dptr<T>() + item * size;
  }
  int64_t QueriesFrom(int64_t first) const { return std::min(blocks_.queries, e_.queries - first); }

  // f(place) for the blocks of keys that some of the queries see.
  template <typename F>
  void ForKeys(int64_t item, int64_t query, int64_t queries, const F& f) const {
    int64_t seen = 0, first = e_.keys;
    for (int64_t q = query; q < query + queries; ++q) {
      const int64_t begin = seen_.First(item, q), end = seen_.End(item, q);
      if (begin >= end) continue;
      first = std::min(first, begin);
      seen = std::max(seen, end);
    }
    first = first / blocks_.keys * blocks_.keys;
    for (int64_t key = first; key < seen; key += blocks_.keys)
      f(Place{item, query, queries, key, std::min(blocks_.keys, seen - key)});
  }

  // The scores of a block, without the mask; and the mask and factors that belong to them.
  ScoreBlock ScoresOf(const Place& at, std::span<const TBlob> in, const OpContext& ctx,
                      const ScoreSpace& s, const float* keys_across) const {
    kernels_.multiply({at.queries, RoundUp(at.keys, kPadding), e_.depth, s.query, blocks_.depth, 1,
                       keys_across + at.key, blocks_.all_keys, s.scores, blocks_.keys, false});
    ScoreBlock block{at.queries, at.keys, blocks_.keys};
    if (setup_->mask.kind != kNoMask || HidesSome(at)) {
      FillMask(at, in, s.mask);
      block.mask = s.mask;
    }
    if (setup_->drops) {
      FillFactors(at, ctx.requested[0].Draws(), s.factors);
      block.factors = s.factors;
    }
    return block;
  }

  // Whether a query of the block does not see all of its keys.
  bool HidesSome(const Place& at) const {
    if (!setup_->hides()) return false;
    for (int64_t q = at.query; q < at.query + at.queries; ++q) {
      if (seen_.First(at.item, q) > at.key || seen_.End(at.item, q) < at.key + at.keys) return true;
    }
    return false;
  }

  void FillMask(const Place& at, std::span<const TBlob> in, float* to) const {
    const MaskView& m = setup_->mask;
    if (m.kind == kNoMask) {
      std::fill_n(to, at.queries * blocks_.keys, 0.0f);
    } else {
      SwitchType(in[P::kMask].type, "attn_mask", [&](auto tag) {
        using M = typename decltype(tag)::type;
        const M* from = in[P::kMask].dptr<M>() +
                        m.slice_of[static_cast<size_t>(at.item)] * m.slice_size +
                        at.query * m.query_stride + at.key * m.key_stride;
        for (int64_t q = 0; q < at.queries; ++q, from += m.query_stride) {
          float* row = to + q * blocks_.keys;
          if (m.kind == kAdditiveMask) {
            for (int64_t k = 0; k < at.keys; ++k)
              row[k] = static_cast<float>(from[k * m.key_stride]);
          } else {
            for (int64_t k = 0; k < at.keys; ++k)
              row[k] = from[k * m.key_stride] == M(0) ? kNever : 0.0f;
          }
        }
      });
    }
    if (!setup_->is_causal && setup_->numbers == kNoMask) return;
    for (int64_t q = 0; q < at.queries; ++q) {
      float* const row = to + q * blocks_.keys;
      const auto within = [&](int64_t key) {
        return std::clamp<int64_t>(key - at.key, 0, at.keys);
      };
      std::fill_n(row, within(seen_.First(at.item, at.query + q)), kNever);
      std::fill(row + within(seen_.End(at.item, at.query + q)), row + at.keys, kNever);
    }
  }

  void FillFactors(const Place& at, const RandomDraws& draws, float* to) const {
    const float kept = setup_->kept_factor();
    for (int64_t q = 0; q < at.queries; ++q, to += blocks_.keys) {
      float uniform[kUniformBlock];
      FillUniform(draws, DrawIndex(e_, at.item, at.query + q, at.key), uniform);
      for (int64_t k = 0; k < at.keys; ++k) to[k] = uniform[k] < setup_->keep ? kept : 0.0f;
    }
  }

  void PackQueries(const TBlob& query, int64_t item, int64_t first, int64_t count,
                   float* to) const {
    Pack(Item(query, item, e_.queries * e_.depth) + first * e_.depth, count, e_.depth,
         static_cast<float>(setup_->scale), blocks_.depth, to);
  }

  void ForwardBlock(const ForwardArgs& args, int64_t item, int64_t query,
                    const ForwardSpace& s) const {
    const int64_t queries = QueriesFrom(query);
    PackQueries(args.in_data[P::kQuery], item, query, queries, s.query);
    std::fill_n(s.means, queries * blocks_.value_depth, 0.0f);
    std::fill_n(s.largest, queries, kNever);
    std::fill_n(s.sum, queries, 0.0f);
    ForKeys(item, query, queries, [&](const Place& at) {
      const ScoreBlock block = ScoresOf(at, args.in_data, args.ctx, s, s.keys_across);
      kernels_.soften(block, s.scores, s.largest, s.sum, s.rescale);
      for (int64_t q = 0; q < queries; ++q) Scale(s.rescale[q], s.means, q);
      kernels_.multiply({queries, blocks_.value_depth, at.keys, s.scores, blocks_.keys, 1,
                         s.values + at.key * blocks_.value_depth, blocks_.value_depth, s.means,
                         blocks_.value_depth, true});
    });
    for (int64_t q = 0; q < queries; ++q) {
      const bool none = s.largest[q] == kNever;
      const float inverse_sum = none ? 0.0f : 1 / s.sum[q];
      if (!args.ctx.saved.empty()) {
        const int64_t row = item * e_.queries + query + q;
        args.ctx.saved[0].dptr<float>()[row] = none ? 0 : s.largest[q];
        args.ctx.saved[1].dptr<float>()[row] = inverse_sum;
      }
      Scale(inverse_sum, s.means, q);
    }
    if (args.req[0] == OpReqType::kNullOp) return;
    Unpack(s.means, queries, e_.value_depth, blocks_.value_depth, 1, args.req[0],
           Item(args.out_data[0], item, e_.queries * e_.value_depth) + query * e_.value_depth);
  }
  void Scale(float factor, float* means, int64_t q) const {
    float* row = means + q * blocks_.value_depth;
    for (int64_t k = 0; k < blocks_.value_depth; ++k) row[k] *= factor;
  }

  // The items that share these keys.
  void BackwardKeys(const BackwardArgs& args, int64_t key_item, const BackwardSpace& s,
                    float* mask_grad) const {
    const T *key = Item(args.in_data[P::kKey], key_item, e_.keys * e_.depth),
            *value = Item(args.in_data[P::kValue], key_item, e_.keys * e_.value_depth);
    PackAcross(key, e_.keys, e_.depth, blocks_.all_keys, s.keys_across);
    Pack(key, e_.keys, e_.depth, 1, blocks_.depth, s.keys);
    PackAcross(value, e_.keys, e_.value_depth, blocks_.all_keys, s.values_across);
    std::fill_n(s.key_grad, e_.keys * blocks_.depth, 0.0f);
    std::fill_n(s.value_grad, e_.keys * blocks_.value_depth, 0.0f);
    for (int64_t item = key_item * e_.group; item < (key_item + 1) * e_.group; ++item) {
      for (int64_t k = 0; k < blocks_.count; ++k)
        BackwardBlock(args, item, k * blocks_.queries, s, mask_grad);
    }
    const auto put = [&](P::Argument argument, const float* from, int64_t columns, int64_t padded) {
      if (args.req[argument] == OpReqType::kNullOp) return;
      Unpack(from, e_.keys, columns, padded, 1, args.req[argument],
             Item(args.in_grad[argument], key_item, e_.keys * columns));
    };
    put(P::kKey, s.key_grad, e_.depth, blocks_.depth);
    put(P::kValue, s.value_grad, e_.value_depth, blocks_.value_depth);
  }

  void BackwardBlock(const BackwardArgs& args, int64_t item, int64_t query, const BackwardSpace& s,
                     float* mask_grad) const {
    const int64_t queries = QueriesFrom(query), first = item * e_.queries + query;
    PackQueries(args.in_data[P::kQuery], item, query, queries, s.query);
    const T *head = args.out_grad[0].dptr<T>() + first * e_.value_depth,
            *out = args.out_data[0].dptr<T>() + first * e_.value_depth;
    Pack(head, queries, e_.value_depth, 1, blocks_.value_depth, s.head);
    for (int64_t q = 0; q < queries; ++q) {
      double mean = 0;
      for (int64_t k = q * e_.value_depth; k < (q + 1) * e_.value_depth; ++k)
        mean += static_cast<double>(head[k]) * static_cast<double>(out[k]);
      s.mean[q] = static_cast<float>(mean);
    }
    std::fill_n(s.query_grad, queries * blocks_.depth, 0.0f);
    ForKeys(item, query, queries, [&](const Place& at) {
      const int64_t width = RoundUp(at.keys, kPadding), row = blocks_.keys;
      const ScoreBlock block = ScoresOf(at, args.in_data, args.ctx, s, s.keys_across);
      kernels_.multiply({queries, width, e_.value_depth, s.head, blocks_.value_depth, 1,
                         s.values_across + at.key, blocks_.all_keys, s.slopes, row, false});
      kernels_.differentiate(block, args.ctx.saved[0].dptr<float>() + first,
                             args.ctx.saved[1].dptr<float>() + first, s.mean, s.scores, s.slopes);
      if (mask_grad) AddToMask(at, s.slopes, mask_grad);
      if (args.req[P::kValue] != OpReqType::kNullOp) {
        kernels_.multiply({at.keys, blocks_.value_depth, queries, s.scores, 1, row, s.head,
                           blocks_.value_depth, s.value_grad + at.key * blocks_.value_depth,
                           blocks_.value_depth, true});
      }
      if (args.req[P::kKey] != OpReqType::kNullOp) {  // the packed queries have the scale
        kernels_.multiply({at.keys, blocks_.depth, queries, s.slopes, 1, row, s.query,
                           blocks_.depth, s.key_grad + at.key * blocks_.depth, blocks_.depth,
                           true});
      }
      if (args.req[P::kQuery] != OpReqType::kNullOp) {
        kernels_.multiply({queries, blocks_.depth, at.keys, s.slopes, row, 1,
                           s.keys + at.key * blocks_.depth, blocks_.depth, s.query_grad,
                           blocks_.depth, true});
      }
    });
    if (args.req[P::kQuery] == OpReqType::kNullOp) return;
    Unpack(s.query_grad, queries, e_.depth, blocks_.depth, static_cast<float>(setup_->scale),
           args.req[P::kQuery], args.in_grad[P::kQuery].dptr<T>() + first * e_.depth);
  }

  void AddToMask(const Place& at, const float* slopes, float* mask_grad) const {
    const MaskView& m = setup_->mask;
    float* to = mask_grad + m.slice_of[static_cast<size_t>(at.item)] * m.slice_size +
                at.query * m.query_stride + at.key * m.key_stride;
    for (int64_t q = 0; q < at.queries; ++q, to += m.query_stride, slopes += blocks_.keys) {
      for (int64_t k = 0; k < at.keys; ++k) to[k * m.key_stride] += slopes[k];
    }
  }

  const std::shared_ptr<const AttentionSetup> setup_;
  const Extents e_;
  const Blocks blocks_;
  const int64_t threads_;
  SeenKeys seen_;  // of the batch
  const Kernels& kernels_ = BlockKernels();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const DType type = request.in[P::kQuery].type;
  if (type != DType::kFloat32 && type != DType::kBfloat16 && type != DType::kFloat16)
    return Refusal{"float32, bfloat16 and float16 only"};
  for (const TensorSpec& spec : request.in) {
    if (spec.shape.Size() == 0) return Refusal{"empty array"};
  }
  const auto setup = static_cast<const AttentionProperty&>(base).Prepare(request);
  const Extents& e = setup->extents;
  constexpr int64_t kFloat = sizeof(float);
  const int64_t threads = std::max(request.threads, 1);
  Plan plan = PlainPlan(base, request);
  constexpr double kNanosecondsPerProduct = 0.03;  // of one thread with AVX2
  plan.cost += kNanosecondsPerProduct * static_cast<double>(e.items * e.queries) *
               static_cast<double>(e.keys) * static_cast<double>(e.depth + e.value_depth) /
               static_cast<double>(threads);
  plan.forward_workspace = threads * FloatsOf<ForwardSpace>(*setup) * kFloat + setup->range_bytes();
  if (request.needs_backward) {
    const int64_t numbers = e.items * e.queries * kFloat;
    plan.saved = {numbers, numbers};  // of each query the largest score and 1 / the sum
    plan.backward_workspace =
        threads * FloatsOf<BackwardSpace>(*setup) * kFloat + setup->range_bytes();
    if (setup->mask.kind == kAdditiveMask)
      plan.backward_workspace += setup->mask.slices * setup->mask.slice_size * kFloat;
  }
  plan.make = [setup, type, threads]() -> std::unique_ptr<Operator> {
    if (type == DType::kBfloat16) return std::make_unique<AttentionSimd<bfloat16>>(setup, threads);
    if (type == DType::kFloat16) return std::make_unique<AttentionSimd<float16>>(setup, threads);
    return std::make_unique<AttentionSimd<float>>(setup, threads);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain::attention

MXTRAIN_OPERATOR(scaled_dot_product_attention_simd_cpu, registry) {
  registry.AddKernel({"scaled_dot_product_attention", mxtrain::DeviceType::kCPU, "simd", 100,
                      mxtrain::attention::PlanSimd});
}
