// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention by plain loops over the scores of one query at a time, in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operators/scaled_dot_product_attention/scaled_dot_product_attention.h"

namespace mxtrain::attention {
namespace {

using P = AttentionProperty;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// sum of a[k] b[k].
template <typename A, typename B>
double Product(const A* a, const B* b, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}
// to[k] += factor from[k].
template <typename T>
void AddScaled(double factor, const T* from, int64_t n, double* to) {
  for (int64_t k = 0; k < n; ++k) to[k] += factor * static_cast<double>(from[k]);
}

class AttentionReference final : public Operator {
 public:
  AttentionReference(std::shared_ptr<const AttentionSetup> setup, int64_t threads)
      : setup_(std::move(setup)), e_(setup_->extents), threads_(threads) {}

  void Forward(const ForwardArgs& args) override {
    if (e_.items * e_.queries == 0) return;
    SeeKeys(args.in_data, args.ctx, ForwardSpace(e_));
    SwitchFloating(args.out_data[0].type, "scaled_dot_product_attention",
                   [&](auto tag) { ForwardOf<typename decltype(tag)::type>(args); });
  }
  void Backward(const BackwardArgs& args) override {
    if (e_.items == 0) {
      for (size_t i = 0; i < args.in_grad.size(); ++i)
        ZeroBlob(OnCpu{args.ctx.run_ctx}, args.req[i], args.in_grad[i]);
      return;
    }
    SeeKeys(args.in_data, args.ctx, BackwardSpace(e_));
    SwitchFloating(args.out_grad[0].type, "scaled_dot_product_attention",
                   [&](auto tag) { BackwardOf<typename decltype(tag)::type>(args); });
  }

  // Doubles of workspace of a thread.
  static int64_t ForwardSpace(const Extents& e) { return e.keys + e.value_depth; }
  static int64_t BackwardSpace(const Extents& e) {
    return 2 * e.keys + e.depth + e.keys * (e.depth + e.value_depth);
  }

 private:
  // Behind the spaces of the threads, where else the gradient of a mask is.
  void SeeKeys(std::span<const TBlob> in, const OpContext& ctx, int64_t space_of_thread) {
    seen_ = SeenKeys(*setup_, in, ctx.workspace.dptr<double>() + threads_ * space_of_thread);
  }

  // The scores of a query, as far as it sees the keys. Returns how far.
  template <typename T>
  int64_t ScoresOf(const T* query, const T* keys, const NumberReader& mask, int64_t item, int64_t i,
                   double* scores) const {
    const int64_t seen = seen_.End(item, i), first = seen_.First(item, i);
    const MaskView& m = setup_->mask;
    std::fill_n(scores, std::min(first, seen), kNever);
    for (int64_t j = first; j < seen; ++j) {
      scores[j] = setup_->scale * Product(query, keys + j * e_.depth, e_.depth);
      if (m.kind == kNoMask) continue;
      const double element = mask.Number(MaskPlace(item, i, j));
      const bool counts = m.kind == kAdditiveMask ? element != kNever : element != 0;
      if (!counts) {
        scores[j] = kNever;
      } else if (m.kind == kAdditiveMask) {
        scores[j] += element;
      }
    }
    return seen;
  }
  int64_t MaskPlace(int64_t item, int64_t i, int64_t j) const {
    const MaskView& m = setup_->mask;
    return m.slice_of[static_cast<size_t>(item)] * m.slice_size + i * m.query_stride +
           j * m.key_stride;
  }
  double FactorOf(const RandomDraws& draws, int64_t item, int64_t i, int64_t j) const {
    if (!setup_->drops) return 1;
    return draws.Uniform(DrawIndex(e_, item, i, j)) < setup_->keep
               ? static_cast<double>(setup_->kept_factor())
               : 0;
  }
  RandomDraws DrawsOf(const OpContext& ctx) const {
    return setup_->drops ? ctx.requested[0].Draws() : RandomDraws();
  }
  NumberReader MaskOf(std::span<const TBlob> in) const {
    return setup_->mask.kind == kNoMask ? NumberReader() : NumberReader(in[P::kMask]);
  }

  template <typename T>
  void ForwardOf(const ForwardArgs& args) const {
    const T *query = args.in_data[P::kQuery].dptr<T>(), *key = args.in_data[P::kKey].dptr<T>(),
            *value = args.in_data[P::kValue].dptr<T>();
    T* out = args.out_data[0].dptr<T>();
    const NumberReader mask = MaskOf(args.in_data);
    const RandomDraws draws = DrawsOf(args.ctx);
    ParallelForPieces(e_.items * e_.queries, 1, [&](int64_t begin, int64_t end, int piece) {
      double* scores = args.ctx.workspace.dptr<double>() + piece * ForwardSpace(e_);
      double* mean = scores + e_.keys;
      for (int64_t row = begin; row < end; ++row) {
        const int64_t item = row / e_.queries, i = row % e_.queries;
        const int64_t key_item = e_.KeyItem(item);
        const T* values = value + key_item * e_.keys * e_.value_depth;
        const int64_t seen = ScoresOf(query + row * e_.depth, key + key_item * e_.keys * e_.depth,
                                      mask, item, i, scores);
        const double largest = seen > 0 ? *std::max_element(scores, scores + seen) : kNever;
        double sum = 0;
        std::fill_n(mean, e_.value_depth, 0.0);
        for (int64_t j = 0; j < seen && largest != kNever; ++j) {
          const double p = std::exp(scores[j] - largest);
          sum += p;
          AddScaled(p * FactorOf(draws, item, i, j), values + j * e_.value_depth, e_.value_depth,
                    mean);
        }
        if (!args.ctx.saved.empty()) {
          args.ctx.saved[0].dptr<double>()[row] = largest == kNever ? 0 : largest;
          args.ctx.saved[1].dptr<double>()[row] = largest == kNever ? 0 : 1 / sum;
        }
        if (args.req[0] == OpReqType::kNullOp) continue;
        for (int64_t d = 0; d < e_.value_depth; ++d) {
          const double result = largest == kNever ? 0 : mean[d] / sum;
          Assign(args.req[0], out, row * e_.value_depth + d, static_cast<ComputeOf<T>>(result));
        }
      }
    });
  }

  template <typename T>
  void BackwardOf(const BackwardArgs& args) const {
    const MaskView& m = setup_->mask;
    const bool wants_mask = m.kind == kAdditiveMask && args.req[P::kMask] != OpReqType::kNullOp;
    double* space = args.ctx.workspace.dptr<double>();
    double* mask_grad = space + threads_ * BackwardSpace(e_);
    if (wants_mask) std::fill_n(mask_grad, m.slices * m.slice_size, 0.0);
    ParallelForPieces(
        setup_->BackwardTasks(wants_mask), 1, [&](int64_t begin, int64_t end, int piece) {
          double* scratch = space + piece * BackwardSpace(e_);
          for (int64_t task = begin; task < end; ++task) {
            setup_->ForKeyItems(wants_mask, task, [&](int64_t key_item) {
              BackwardOfKeys<T>(args, key_item, scratch, wants_mask ? mask_grad : nullptr);
            });
          }
        });
    if (!wants_mask) return;
    SwitchFloating(args.in_grad[P::kMask].type, "attn_mask", [&](auto tag) {
      using M = typename decltype(tag)::type;
      Map<M>(args.ctx.run_ctx, args.in_grad[P::kMask], args.req[P::kMask],
             ElementAt<ComputeOf<M>, double>{mask_grad});
    });
  }

  // The items that share these keys.
  template <typename T>
  void BackwardOfKeys(const BackwardArgs& args, int64_t key_item, double* scratch,
                      double* mask_grad) const {
    const int64_t key_size = e_.keys * e_.depth, value_size = e_.keys * e_.value_depth;
    double* const key_grad = scratch + 2 * e_.keys + e_.depth;
    std::fill_n(key_grad, key_size + value_size, 0.0);
    for (int64_t item = key_item * e_.group; item < (key_item + 1) * e_.group; ++item)
      BackwardOfItem<T>(args, item, scratch, mask_grad);
    Put<T>(args, P::kKey, key_item * key_size, key_grad, key_size);
    Put<T>(args, P::kValue, key_item * value_size, key_grad + key_size, value_size);
  }

  // Adds to the gradients of key and value in the scratch.
  template <typename T>
  void BackwardOfItem(const BackwardArgs& args, int64_t item, double* scratch,
                      double* mask_grad) const {
    const auto at = [](const TBlob& array, int64_t which, int64_t size) {
      return array.dptr<T>() + which * size;
    };
    const int64_t query_size = e_.queries * e_.depth, key_size = e_.keys * e_.depth,
                  value_size = e_.keys * e_.value_depth, key_item = e_.KeyItem(item);
    const T *query = at(args.in_data[P::kQuery], item, query_size),
            *key = at(args.in_data[P::kKey], key_item, key_size),
            *value = at(args.in_data[P::kValue], key_item, value_size),
            *head = at(args.out_grad[0], item, e_.queries * e_.value_depth);
    const double *largest = args.ctx.saved[0].dptr<double>() + item * e_.queries,
                 *inverse_sum = args.ctx.saved[1].dptr<double>() + item * e_.queries;
    const NumberReader mask = MaskOf(args.in_data);
    const RandomDraws draws = DrawsOf(args.ctx);
    double *p = scratch, *slope = p + e_.keys, *query_grad = slope + e_.keys,
           *key_grad = query_grad + e_.depth, *value_grad = key_grad + key_size;
    for (int64_t i = 0; i < e_.queries; ++i) {
      const T *x = query + i * e_.depth, *g = head + i * e_.value_depth;
      const int64_t seen = ScoresOf(x, key, mask, item, i, p);
      double mean = 0;
      for (int64_t j = 0; j < seen; ++j) {
        p[j] = std::exp(p[j] - largest[i]) * inverse_sum[i];
        const double factor = FactorOf(draws, item, i, j);
        slope[j] = factor * Product(g, value + j * e_.value_depth, e_.value_depth);
        mean += p[j] * slope[j];
        AddScaled(p[j] * factor, g, e_.value_depth, value_grad + j * e_.value_depth);
      }
      std::fill_n(query_grad, e_.depth, 0.0);
      for (int64_t j = 0; j < seen; ++j) {
        const double score_grad = p[j] * (slope[j] - mean);
        if (mask_grad) mask_grad[MaskPlace(item, i, j)] += score_grad;
        AddScaled(setup_->scale * score_grad, key + j * e_.depth, e_.depth, query_grad);
        AddScaled(setup_->scale * score_grad, x, e_.depth, key_grad + j * e_.depth);
      }
      Put<T>(args, P::kQuery, item * query_size + i * e_.depth, query_grad, e_.depth);
    }
  }

  template <typename T>
  static void Put(const BackwardArgs& args, size_t argument, int64_t first, const double* from,
                  int64_t n) {
    const OpReqType req = args.req[argument];
    if (req == OpReqType::kNullOp) return;
    T* to = args.in_grad[argument].dptr<T>() + first;
    for (int64_t k = 0; k < n; ++k) Assign(req, to, k, static_cast<ComputeOf<T>>(from[k]));
  }

  const std::shared_ptr<const AttentionSetup> setup_;
  const Extents e_;
  const int64_t threads_;
  SeenKeys seen_;  // of the batch
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request,
                                      Backend&) {
  const auto setup = static_cast<const AttentionProperty&>(base).Prepare(request);
  const Extents& e = setup->extents;
  constexpr int64_t kDouble = sizeof(double);
  const int64_t threads = std::max(request.threads, 1);
  Plan plan = PlainPlan(base, request);
  constexpr double kNanosecondsPerProduct = 2;
  plan.cost += kNanosecondsPerProduct * static_cast<double>(e.items * e.queries) *
               static_cast<double>(e.keys) * static_cast<double>(e.depth + e.value_depth);
  plan.forward_workspace =
      threads * AttentionReference::ForwardSpace(e) * kDouble + setup->range_bytes();
  if (request.needs_backward) {
    const int64_t numbers = e.items * e.queries * kDouble;
    plan.saved = {numbers, numbers};  // of each query the largest score and 1 / the sum
    plan.backward_workspace =
        threads * AttentionReference::BackwardSpace(e) * kDouble + setup->range_bytes();
    if (setup->mask.kind == kAdditiveMask)
      plan.backward_workspace += setup->mask.slices * setup->mask.slice_size * kDouble;
    plan.backward_reads =
        BackwardReads{{true}, std::vector<bool>(request.in.size(), true), {false}};
  }
  plan.make = [setup, threads] { return std::make_unique<AttentionReference>(setup, threads); };
  return plan;
}

}  // namespace
}  // namespace mxtrain::attention

MXTRAIN_OPERATOR(scaled_dot_product_attention_cpu, registry) {
  registry.AddKernel(mxtrain::LastKernel<mxtrain::OnCpu>("scaled_dot_product_attention",
                                                         mxtrain::attention::PlanReference));
}
