// SPDX-License-Identifier: Apache-2.0
#pragma once
// RNN on any device: a matrix product and a loop over elements for each step. Who includes this for
// a device of GPUs includes that device's dot/matrix_product before.
#include <algorithm>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/dot/matrix_product.h"
#include "mxtrain/operators/rnn/rnn_pass.h"

namespace mxtrain::rnn {

template <typename C, int kMode>
struct ForwardElement {
  Direction<C> d;
  int64_t step;
  const C* product;  // [batch, gates hidden]
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t n = i / d.g.hidden, u = i % d.g.hidden;
    const ForwardRow<C> row(d, step, n, product + n * d.g.gate_columns(), d.g.hidden);
    if (row.counts) {
      row.template Step<kMode>(u, u);
    } else {
      row.template Skip<kMode>(u, d.full != nullptr);
    }
  }
};
template <typename C, int kMode, bool kProjects>
struct BackwardElement {
  Direction<C> d;
  DirectionGradient<C> to;
  int64_t step;
  const C* product;  // [batch, hidden]
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t n = i / d.g.hidden, u = i % d.g.hidden;
    const BackwardRow<C> row(d, to, step, n, product + n * d.g.hidden);
    if (row.counts) {
      row.template Step<kMode, kProjects>(u, u);
    } else {
      row.template Skip<kMode, kProjects>(u, u);
    }
  }
};

// The projections of a step, [batch, output], become the state.
template <typename C>
struct ProjectedElement {
  Direction<C> d;
  int64_t step;
  const C* product;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t n = i / d.g.output, u = i % d.g.output;
    d.H(d.To(step), n)[u] = d.lengths.Counts(step, n) ? product[i] : d.H(d.From(step), n)[u];
  }
};
// The gradient of the projections: what comes from later steps, and the head gradient.
template <typename C>
struct TotalElement {
  Direction<C> d;
  DirectionGradient<C> to;
  int64_t step;
  const C* product;
  MXTRAIN_HD void operator()(int64_t i) const {
    const int64_t n = i / d.g.output, u = i % d.g.output, row = step * d.g.batch + n;
    const C later = to.h[i] + product[i];
    const bool counts = d.lengths.Counts(step, n);
    to.total[row * d.g.output + u] = counts ? later + to.head[row * to.head_row + u] : C(0);
    to.h[i] = counts ? C(0) : later;
  }
};
template <typename C>
struct AddElement {
  const C* from;
  C* to;
  MXTRAIN_HD void operator()(int64_t i) const { to[i] += from[i]; }
};

template <typename C>
struct SumColumn {
  int64_t rows, step;
  const C* from;
  OpReqType req;
  C* to;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t column) const {
    double sum = 0;
    for (int64_t r = team.rank(); r < rows; r += team.size())
      sum += static_cast<double>(from[r * step + column]);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, to, column, static_cast<C>(sum));
  }
};

// f(std::integral_constant<int, mode>).
template <typename F>
void SwitchMode(int mode, const F& f) {
  switch (mode) {
    case kRelu:
      return f(std::integral_constant<int, kRelu>());
    case kTanh:
      return f(std::integral_constant<int, kTanh>());
    case kLstm:
      return f(std::integral_constant<int, kLstm>());
    default:
      return f(std::integral_constant<int, kGru>());
  }
}

// The steps of rnn_pass.h for arrays of C.
template <typename Device, typename C>
class LoopSteps {
 public:
  explicit LoopSteps(Math math) : math_(math) {}

  static int64_t ScratchOf(const Geometry& g) {
    return g.batch * std::max(g.gate_columns(), g.output);
  }

  void Multiply(const Device& device, const C* a, const MatrixView& va, const C* b,
                const MatrixView& vb, C* c, const MatrixView& vc, bool add, C*) const {
    const auto blob = [&](const C* data, const MatrixView& v) {
      return TBlob{const_cast<C*>(data), TShape{v.rows, v.columns}, kType, {}, {}};
    };
    if (vc.rows * vc.columns == 0) return;
    dot::MultiplyMatrices(device, math_, blob(a, va), va, blob(b, vb), vb, blob(c, vc), vc,
                          add ? OpReqType::kAddTo : OpReqType::kWriteTo);
  }

  void Forward(const Device& device, const Direction<C>& d, const C* weights, const C* projection,
               C* scratch) const {
    const Geometry& g = d.g;
    for (int64_t k = 0; k < g.steps; ++k) {
      const int64_t step = d.StepAt(k);
      Multiply(device, d.H(d.From(step)), RowsOf(g.batch, g.output, d.h_row), weights,
               RowsOf(g.gate_columns(), g.output, g.output).Transposed(), scratch,
               RowsOf(g.batch, g.gate_columns(), g.gate_columns()), false, nullptr);
      SwitchMode(g.mode, [&](auto mode) {
        Launch(device, g.batch * g.hidden, ForwardElement<C, mode()>{d, step, scratch});
      });
      if (!g.projects) continue;
      Multiply(device, d.full + d.UnitsBefore(step), RowsOf(g.batch, g.hidden, g.hidden),
               projection, RowsOf(g.output, g.hidden, g.hidden).Transposed(), scratch,
               RowsOf(g.batch, g.output, g.output), false, nullptr);
      Launch(device, g.batch * g.output, ProjectedElement<C>{d, step, scratch});
    }
  }

  void Backward(const Device& device, const Direction<C>& d, const DirectionGradient<C>& to,
                const C* weights, const C* projection, C* scratch) const {
    const Geometry& g = d.g;
    ZeroRows(device, g.batch, g.output, scratch);
    for (int64_t k = g.steps; k-- > 0;) {
      const int64_t step = d.StepAt(k);
      if (g.projects) {
        Launch(device, g.batch * g.output, TotalElement<C>{d, to, step, scratch});
        Multiply(device, to.total + step * g.batch * g.output, RowsOf(g.batch, g.output, g.output),
                 projection, RowsOf(g.output, g.hidden, g.hidden), scratch,
                 RowsOf(g.batch, g.hidden, g.hidden), false, nullptr);
        Launch(device, g.batch * g.hidden, BackwardElement<C, kLstm, true>{d, to, step, scratch});
      } else {
        SwitchMode(g.mode, [&](auto mode) {
          Launch(device, g.batch * g.hidden,
                 BackwardElement<C, mode(), false>{d, to, step, scratch});
        });
      }
      Multiply(device, to.recurrent + step * g.batch * d.gate_row,
               RowsOf(g.batch, g.gate_columns(), d.gate_row), weights,
               RowsOf(g.gate_columns(), g.output, g.output), scratch,
               RowsOf(g.batch, g.output, g.output), false, nullptr);
    }
    Launch(device, g.batch * g.output, AddElement<C>{scratch, to.h});
  }

  void SumColumns(const Device& device, int64_t rows, int64_t columns, const C* from, int64_t row,
                  OpReqType req, C* to, C*) const {
    ForColumns(device, columns, rows, SumColumn<C>{rows, row, from, req, to});
  }

 private:
  static constexpr DType kType = std::is_same_v<C, double> ? DType::kFloat64 : DType::kFloat32;
  const Math math_;
};

// What does not depend on the kernel. `saves`: for a backward pass.
inline Setup SetupOf(const RnnProperty& property, const PlanRequest& request) {
  Setup s;
  s.g = property.GeometryOf(request.in[RnnProperty::kData].shape);
  const DType type = request.in[RnnProperty::kData].type;
  s.has_lengths = property.LengthsAt() >= 0;
  s.drops = request.is_train && property.param().p > 0 && s.g.layers > 1;
  s.keep = 1 - property.param().p;
  s.converts = type != DType::kFloat32 && type != DType::kFloat64;
  s.saves = request.needs_backward;
  s.h_row = s.g.output;
  s.gate_row = s.g.gate_columns();
  return s;
}

// The plan of the pass Pass<T, C> for `s`, whose scratch is known.
template <typename Pass>
Plan PlanOfPass(const OperatorProperty& base, const PlanRequest& request, const Setup& s) {
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = Pass::ForwardBytes(s);
  if (!request.needs_backward) return plan;
  plan.saved = {Pass::SavedBytes(s)};
  plan.backward_workspace = Pass::BackwardBytes(s);
  return plan;
}

template <typename Device>
Expected<Plan, Refusal> PlanLoops(const OperatorProperty& base, const PlanRequest& request,
                                  Backend&) {
  const auto& property = static_cast<const RnnProperty&>(base);
  Setup s = SetupOf(property, request);
  s.forward_scratch = s.backward_scratch = LoopSteps<Device, float>::ScratchOf(s.g);
  Plan plan;
  SwitchFloating(request.in[RnnProperty::kData].type, "RNN", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = AccumulatorOf<T>;
    using Steps = LoopSteps<Device, C>;
    using Pass = RnnPass<Device, Steps, T, C>;
    plan = PlanOfPass<Pass>(base, request, s);
    plan.make = [s, at = property.LengthsAt(), math = request.math] {
      return std::make_unique<Pass>(s, at, std::make_unique<Steps>(math));
    };
  });
  constexpr double kNanosecondsPerProduct = 0.5;
  std::vector<TShape> in, out;
  for (const TensorSpec& spec : request.in) in.push_back(spec.shape);
  plan.cost += kNanosecondsPerProduct * base.ForwardFlops(in, out);
  return plan;
}

}  // namespace mxtrain::rnn
