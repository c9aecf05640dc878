// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operator around attention_tiles.h: 16 bits, no array as a mask. Device is OnGpu or a device
// of a test.
#include <array>
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_tiles.h"

namespace mxtrain::attention {

// f(tag of the type, std::integral_constant of the columns of tiles, std::bool_constant).
template <typename F>
void SwitchTiles(DType type, const Extents& e, bool drops, const F& f) {
  const auto of_type = [&](auto tag) {
    const auto of_depth = [&](auto depth) {
      drops ? f(tag, depth, std::true_type()) : f(tag, depth, std::false_type());
    };
    const int64_t depth = std::max(e.depth, e.value_depth);
    if (depth <= 32) return of_depth(std::integral_constant<int, 32>());
    if (depth <= 64) return of_depth(std::integral_constant<int, 64>());
    MXTRAIN_ASSERT(depth <= kMostTileDepth);
    of_depth(std::integral_constant<int, kMostTileDepth>());
  };
  if (type == DType::kFloat16) return of_type(TypeTag<float16>());
  MXTRAIN_ASSERT(type == DType::kBfloat16);
  of_type(TypeTag<bfloat16>());
}

inline constexpr int64_t kRangeBytes = sizeof(KeyRange);

// The keys that a query sees by segments or lengths, as SeenKeys finds them.
struct RangeOfQuery {
  NumberReader numbers;
  int kind;
  int64_t queries, keys;
  KeyRange* ranges;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t row = i / queries, query = i % queries;
    int64_t first = 0, end = 0;
    if (kind == kKeyLengths) {
      const int64_t length = numbers.Index(row);
      end = length < 0 ? 0 : length < keys ? length : keys;
    } else {
      const int64_t begin = row * keys, number = numbers.Index(begin + query);
      first = end = query;
      while (number >= 0 && end < keys && numbers.Index(begin + end) == number) ++end;
      while (number >= 0 && first > 0 && numbers.Index(begin + first - 1) == number) --first;
    }
    ranges[i] = KeyRange{static_cast<int32_t>(first), static_cast<int32_t>(end)};
  }
};

template <typename Device>
class AttentionByTiles final : public Operator {
  using P = AttentionProperty;

 public:
  explicit AttentionByTiles(std::shared_ptr<const AttentionSetup> setup)
      : setup_(std::move(setup)) {}

  void Forward(const ForwardArgs& args) override {
    FindRanges(args.ctx, args.in_data, 0);
    SwitchTiles(args.out_data[0].type, setup_->extents, setup_->drops,
                [&](auto tag, auto depth, auto drops) {
                  using T = typename decltype(tag)::type;
                  const auto [query, key, value] = InputsOf<T>(args.in_data);
                  const ForwardTiles<T, depth(), drops()> tiles{
                      CallOf<drops()>(args.ctx),
                      query,
                      key,
                      value,
                      ItemsOf<T>(args.out_data[0]),
                      args.req[0],
                      args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<RowScale>()};
                  ForTiles(Device{args.ctx.run_ctx}, tiles.tasks(), tiles);
                });
  }

  void Backward(const BackwardArgs& args) override {
    const Extents& e = setup_->extents;
    FindRanges(args.ctx, args.in_data,
               RoundUp(e.items * e.queries * static_cast<int64_t>(sizeof(float)), kRangeBytes));
    SwitchTiles(args.out_grad[0].type, setup_->extents, setup_->drops,
                [&](auto tag, auto depth, auto drops) {
                  BackwardOf<typename decltype(tag)::type, depth(), drops()>(args);
                });
  }

 private:
  template <typename T, int kDepth, bool kDrops>
  void BackwardOf(const BackwardArgs& args) const {
    const Device device{args.ctx.run_ctx};
    const Extents& e = setup_->extents;
    const auto [query, key, value] = InputsOf<T>(args.in_data);
    const auto head = ItemsOf<const T>(args.out_grad[0]);
    float* const along = args.ctx.workspace.dptr<float>();
    ForRows(device, e.items * e.queries, e.value_depth,
            AlongHead<T>{head, ItemsOf<const T>(args.out_data[0]), along});
    const BackwardTiles<T, kDrops> reads{
        CallOf<kDrops>(args.ctx),           query, key, value, head,
        args.ctx.saved[0].dptr<RowScale>(), along};
    if (args.req[P::kQuery] != OpReqType::kNullOp) {
      const QueryGradient<T, kDepth, kDrops> tiles{reads, ItemsOf<T>(args.in_grad[P::kQuery]),
                                                   args.req[P::kQuery]};
      ForTiles(device, tiles.tasks(), tiles);
    }
    if (args.req[P::kKey] != OpReqType::kNullOp || args.req[P::kValue] != OpReqType::kNullOp) {
      const KeyGradient<T, kDepth, kDrops> tiles{reads, ItemsOf<T>(args.in_grad[P::kKey]),
                                                 ItemsOf<T>(args.in_grad[P::kValue]),
                                                 args.req[P::kKey], args.req[P::kValue]};
      ForTiles(device, tiles.tasks(), tiles);
    }
  }

  template <typename T>
  static Items<T> ItemsOf(const TBlob& array) {
    const int n = array.shape.ndim();
    return {static_cast<T*>(array.data), array.shape[n - 2], array.shape[n - 1]};
  }
  template <typename T>
  static std::array<Items<const T>, 3> InputsOf(std::span<const TBlob> in) {
    return {ItemsOf<const T>(in[P::kQuery]), ItemsOf<const T>(in[P::kKey]),
            ItemsOf<const T>(in[P::kValue])};
  }
  template <bool kDrops>
  TileCall<kDrops> CallOf(const OpContext& ctx) const {
    return {*setup_, kDrops ? ctx.requested[0].Draws() : RandomDraws(), ranges_};
  }
  // `at`: in the workspace.
  void FindRanges(const OpContext& ctx, std::span<const TBlob> in, int64_t at) {
    if (setup_->numbers == kNoMask) return;
    auto* const ranges = reinterpret_cast<KeyRange*>(static_cast<char*>(ctx.workspace.data) + at);
    Launch(Device{ctx.run_ctx}, setup_->batch * setup_->extents.queries,
           RangeOfQuery{NumberReader(in[P::kMask]), setup_->numbers, setup_->extents.queries,
                        setup_->extents.keys, ranges});
    ranges_ = ranges;
  }

  const std::shared_ptr<const AttentionSetup> setup_;
  const KeyRange* ranges_ = nullptr;  // of the batch
};

template <typename Device>
Expected<Plan, Refusal> PlanByTiles(const OperatorProperty& base, const PlanRequest& request,
                                    Backend& backend) {
  const DType type = request.in[0].type;
  if (type != DType::kFloat16 && type != DType::kBfloat16)
    return Refusal{format("no matrix units for {}", NameOf(type))};
  // The units that take bfloat16 are those that tiles are written for.
  if (!backend.WhyNotFastIn(DType::kBfloat16, request.ctx).empty())
    return Refusal{"it needs a GPU of compute capability 8.0"};
  const auto setup = static_cast<const AttentionProperty&>(base).Prepare(request);
  const Extents& e = setup->extents;
  if (setup->mask.kind != kNoMask) return Refusal{"it takes no mask"};
  if (std::max(e.depth, e.value_depth) > kMostTileDepth)
    return Refusal{format("depths are at most {}", kMostTileDepth)};
  Plan plan = PlainPlan(base, request);
  constexpr double kNanosecondsPerProduct = 1e-5;  // 100 TFLOP/s of multiplications
  plan.cost += kNanosecondsPerProduct * static_cast<double>(e.items * e.queries) *
               static_cast<double>(e.keys) * static_cast<double>(e.depth + e.value_depth);
  if (request.needs_backward) {
    plan.saved = {e.items * e.queries * static_cast<int64_t>(sizeof(RowScale))};
    plan.backward_workspace = e.items * e.queries * static_cast<int64_t>(sizeof(float));
    plan.backward_reads = BackwardReads{{true}, std::vector<bool>(request.in.size(), true), {true}};
    // Behind them; at a multiple of the size of a range.
    plan.backward_workspace = RoundUp(plan.backward_workspace, kRangeBytes) + setup->range_bytes();
  }
  plan.forward_workspace = setup->range_bytes();
  plan.make = [setup] { return std::make_unique<AttentionByTiles<Device>>(setup); };
  return plan;
}

template <typename Device>
KernelEntry TileKernel() {
  constexpr int kRank = 100;
  return {"scaled_dot_product_attention", Device::kType, "tiles", kRank, PlanByTiles<Device>};
}

}  // namespace mxtrain::attention
