// SPDX-License-Identifier: Apache-2.0
#pragma once
// A team finds the best class of a step, a thread joins the steps of a sequence.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/exact_integers.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/ctc_greedy_decoder/ctc_greedy_decoder.h"

namespace mxtrain::ctc_greedy_decoder {

// The largest score of a step and its class; of equal ones the first.
struct Best {
  double score;
  int64_t at;
};
struct BetterOf {
  MXTRAIN_HD Best operator()(const Best& a, const Best& b) const {
    if (a.score != b.score) return a.score > b.score ? a : b;
    return a.at < b.at ? a : b;
  }
};

template <typename T>
struct BestOfStep {
  using C = ComputeOf<T>;
  const T* data;
  int64_t classes;
  double* probability;  // [T, N]
  int32_t* best;        // [T, N]
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const T* x = data + row * classes;
    Best found{-std::numeric_limits<double>::infinity(), classes};
    for (int64_t k = team.rank(); k < classes; k += team.size())
      found = BetterOf()(found, Best{static_cast<double>(x[k]), k});
    found = team.Fold(found, BetterOf{});
    double sum = 0;
    for (int64_t k = team.rank(); k < classes; k += team.size())
      sum += std::exp(static_cast<double>(x[k]) - found.score);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() != 0) return;
    probability[row] = 1 / sum;
    best[row] = static_cast<int32_t>(found.at < classes ? found.at : 0);
  }
};

template <typename T>
struct JoinSteps {
  using C = ComputeOf<T>;
  NumberReader lengths;
  bool has_lengths;
  int64_t steps, batch, blank;
  const double* probability;
  const int32_t* best;
  OpReqType req;
  T* out;  // [N, T, 2]

  MXTRAIN_HD void Put(int64_t n, int64_t i, double label, double p) const {
    Assign(req, out, (n * steps + i) * 2, static_cast<C>(label));
    Assign(req, out, (n * steps + i) * 2 + 1, static_cast<C>(p));
  }
  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t n) const {
    const int64_t end = has_lengths ? lengths.Index(n) : steps;
    int64_t count = 0, label = -1;
    double p = 0;
    for (int64_t t = 0; t < steps && t < end; ++t) {
      const int64_t now = best[t * batch + n];
      const double own = probability[t * batch + n];
      if (now == label) {
        p = own > p ? own : p;
        continue;
      }
      if (label >= 0 && label != blank) Put(n, count++, static_cast<double>(label), p);
      label = now, p = own;
    }
    if (label >= 0 && label != blank) Put(n, count++, static_cast<double>(label), p);
    for (; count < steps; ++count) Put(n, count, -1, -1);
  }
};

template <typename Device>
class CtcGreedyDecoder final : public Operator {
 public:
  explicit CtcGreedyDecoder(const CtcGreedyDecoderParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& data = args.in_data[0];
    const int64_t steps = data.shape[0], batch = data.shape[1], classes = data.shape[2];
    if (args.req[0] == OpReqType::kNullOp || steps * batch == 0) return;
    const Device device{args.ctx.run_ctx};
    double* const probability = args.ctx.workspace.template dptr<double>();
    int32_t* const best = reinterpret_cast<int32_t*>(probability + steps * batch);
    SwitchFloating(data.type, "ctc_greedy_decoder", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForRowsOfAnyLength(device, steps * batch, classes,
                         BestOfStep<T>{data.template dptr<T>(), classes, probability, best});
      ForColumns(
          device, batch, steps,
          JoinSteps<T>{param_.use_data_lengths ? NumberReader(args.in_data[1]) : NumberReader(),
                       param_.use_data_lengths, steps, batch,
                       param_.blank_label == kBlankFirst ? 0 : classes - 1, probability, best,
                       args.req[0], args.out_data[0].template dptr<T>()});
    });
  }

 private:
  const CtcGreedyDecoderParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const TShape& data = request.in[0].shape;
  if (data[2] - 1 > LargestExact(request.in[0].type))
    return Refusal{format("classes are not exact in {}", NameOf(request.in[0].type))};
  const int64_t bytes = data[0] * data[1] * static_cast<int64_t>(sizeof(double) + sizeof(int32_t));
  return ForwardPlan<CtcGreedyDecoderProperty, CtcGreedyDecoder<Device>>(base, request, bytes);
}

}  // namespace mxtrain::ctc_greedy_decoder

MXTRAIN_KERNELS(ctc_greedy_decoder, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("ctc_greedy_decoder", ctc_greedy_decoder::MakePlan<Device>));
}
