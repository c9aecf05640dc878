// SPDX-License-Identifier: Apache-2.0
#pragma once
// rotary_embedding, written once for all devices: a table of cosines and sines in the workspace,
// then a team for each token of each head.
#include <cmath>
#include <memory>

#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/rotary_embedding/rotary_embedding.h"

namespace mxtrain::rotary {

template <typename A>
struct Turn {
  A cosine, sine;
};

// table [batch or 1, tokens, pairs].
template <typename A>
struct FillTable {
  RotarySetup s;
  NumberReader position;
  Turn<A>* table;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t pair = i % s.pairs, row = i / s.pairs, token = row % s.tokens;
    double at = static_cast<double>(token);
    if (s.use_position) at += static_cast<double>(position.Index(row / s.tokens));
    const double angle =
        at * std::pow(s.base, -static_cast<double>(pair) / static_cast<double>(s.pairs));
    table[i] = {static_cast<A>(std::cos(angle)), static_cast<A>(std::sin(angle))};
  }
};

template <typename T>
struct TurnRow {
  using A = AccumulatorOf<T>;
  RotarySetup s;
  const Turn<A>* table;
  A direction;  // 1, or -1: back
  const T* from;
  T* to;  // may be `from`
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t token = row % s.tokens, example = s.use_position ? row / s.tokens / s.heads : 0;
    const Turn<A>* const turns = table + (example * s.tokens + token) * s.pairs;
    const T* const x = from + row * s.depth;
    T* const y = to + row * s.depth;
    for (int64_t k = team.rank(); k < s.pairs; k += team.size()) {
      const int64_t first = s.interleaved ? 2 * k : k,
                    second = s.interleaved ? first + 1 : k + s.pairs;
      const A a = static_cast<A>(x[first]), b = static_cast<A>(x[second]), c = turns[k].cosine,
              d = direction * turns[k].sine;
      Assign(req, y, first, a * c - b * d);
      Assign(req, y, second, a * d + b * c);
    }
    for (int64_t k = 2 * s.pairs + team.rank(); k < s.depth; k += team.size())
      Assign(req, y, k, static_cast<A>(x[k]));
  }
};

template <typename Device>
class RotaryEmbedding final : public Operator {
  using P = RotaryProperty;

 public:
  explicit RotaryEmbedding(const RotarySetup& setup) : setup_(setup) {}
  void Forward(const ForwardArgs& args) override {
    Run(args.ctx, args.in_data, 1, args.in_data[P::kData], args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Run(args.ctx, args.in_data, -1, args.out_grad[0], args.req[P::kData], args.in_grad[P::kData]);
  }

 private:
  void Run(const OpContext& ctx, std::span<const TBlob> in, int direction, const TBlob& from,
           OpReqType req, const TBlob& to) const {
    if (req == OpReqType::kNullOp) return;
    const Device device{ctx.run_ctx};
    const NumberReader position =
        setup_.use_position ? NumberReader(in[P::kPosition]) : NumberReader();
    SwitchFloating(to.type, "rotary_embedding", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      auto* const table = ctx.workspace.template dptr<Turn<A>>();
      Launch(device, setup_.angles(), FillTable<A>{setup_, position, table});
      ForRowsOfAnyLength(device, setup_.batch * setup_.heads * setup_.tokens, setup_.depth,
                         TurnRow<T>{setup_, table, static_cast<A>(direction),
                                    from.template dptr<T>(), to.template dptr<T>(), req});
    });
  }

  const RotarySetup setup_;
};

template <typename Device>
Expected<Plan, Refusal> PlanRotary(const OperatorProperty& base, const PlanRequest& request,
                                   Backend&) {
  const TensorSpec& data = request.in[0];
  const RotarySetup setup = static_cast<const RotaryProperty&>(base).Prepare(data.shape);
  Plan plan = PlainPlan(base, request);
  const int64_t bytes = data.type == DType::kFloat64 ? sizeof(Turn<double>) : sizeof(Turn<float>);
  plan.forward_workspace = setup.angles() * bytes;
  if (request.needs_backward) plan.backward_workspace = setup.angles() * bytes;
  plan.make = [setup] { return std::make_unique<RotaryEmbedding<Device>>(setup); };
  return plan;
}

}  // namespace mxtrain::rotary

MXTRAIN_KERNELS(rotary_embedding, Device, registry) {
  registry.AddKernel(
      mxtrain::LastKernel<Device>("rotary_embedding", mxtrain::rotary::PlanRotary<Device>));
}
