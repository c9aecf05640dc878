// SPDX-License-Identifier: Apache-2.0
// RNN on the CPU by vectors (rnn_kernels.h), in float or double. Weights are packed once per pass.
//
// Sequences do not depend on each other: where a core's own cache holds the weights, each thread
// takes some sequences through all steps. Else the threads share a step, each with some of the
// units and their weights. How work is divided does not change a bit of the result.
#include <algorithm>
#include <memory>

#include "mxtrain/operators/rnn/rnn_kernels.h"
#include "mxtrain/operators/rnn/rnn_loops.h"

namespace mxtrain::rnn {
namespace {

// Weights of a direction that a core's own cache holds beside what else a step reads.
constexpr int64_t kPrivateBytes = int64_t{1} << 20;
// Multiply-adds for which a second thread pays.
constexpr int64_t kLeastProducts = int64_t{1} << 17;
// Rows of a product that are packed at a time, and the longest sums: they fit into a core's cache.
constexpr int64_t kMostRows = 384, kMostInner = 768;
// Rows that are summed by columns at a time.
constexpr int64_t kSumRows = 64;

// Rows whose length is a power of two fall into few places of a cache.
int64_t SpreadRow(int64_t length) {
  constexpr int64_t kBad = 256, kMore = 16;
  return length % kBad == 0 ? length + kMore : length;
}

template <typename C>
class SimdSteps {
 public:
  // `threads`: of the plan, for which there is scratch.
  explicit SimdSteps(int64_t threads) : threads_(threads) {}

  static int64_t ForwardScratch(const Geometry& g, int64_t threads) {
    return std::max(PanelsOf(g.gates() * Vectors(g.hidden), g.output) +
                        PanelsOf(g.projects ? Vectors(g.output) : 0, g.hidden),
                    MultiplyScratch(g, false, threads));
  }
  static int64_t BackwardScratch(const Geometry& g, int64_t threads) {
    return std::max({PanelsOf(Vectors(g.output), g.gate_columns()) +
                         PanelsOf(g.projects ? Vectors(g.hidden) : 0, g.output),
                     MultiplyScratch(g, true, threads), SumScratch(g)});
  }

  void Multiply(const OnCpu&, const C* a, const MatrixView& va, const C* b, const MatrixView& vb,
                C* c, const MatrixView& vc, bool add, C* scratch) const {
    const Blocks blocks(vc.rows, vc.columns, va.columns, threads_);
    if (va.columns == 0 && !add) {
      for (int64_t r = 0; r < vc.rows; ++r) std::fill_n(c + r * vc.row_stride, vc.columns, C(0));
    }
    C* const rows = scratch + PanelsOf(blocks.vectors, blocks.inner);
    const bool direct = va.column_stride == 1 && SpreadRow(va.row_stride) == va.row_stride;
    for (int64_t k = 0; k < va.columns; k += blocks.inner) {
      const int64_t inner = std::min(blocks.inner, va.columns - k);
      Pack(b + k * vb.row_stride, {inner, vb.columns, vb.row_stride, vb.column_stride}, 1, 0,
           scratch);
      const int64_t grain = std::max<int64_t>(
          1, kLeastProducts / std::max<int64_t>(1, blocks.rows * inner * vc.columns));
      ParallelForPieces(
          CeilDivide(vc.rows, blocks.rows), grain, [&](int64_t begin, int64_t end, int piece) {
            for (int64_t block = begin; block < end; ++block) {
              const int64_t first = block * blocks.rows, n = std::min(blocks.rows, vc.rows - first);
              const C* left = a + first * va.row_stride + k * va.column_stride;
              if (!direct) {
                C* const packed = rows + piece * blocks.rows * blocks.inner;
                kernels_.pack_rows(left, {n, inner, va.row_stride, va.column_stride}, packed);
                left = packed;
              }
              kernels_.multiply({n, vc.columns, inner, left, direct ? va.row_stride : 0, scratch,
                                 c + first * vc.row_stride, vc.row_stride, add || k > 0});
            }
          });
    }
  }

  void Forward(const OnCpu&, const Direction<C>& d, const C* weights, const C* projection,
               C* scratch) const {
    const Geometry& g = d.g;
    const C* const panels = scratch;
    C* const more = scratch + PanelsOf(g.gates() * Vectors(g.hidden), g.output);
    for (int64_t gate = 0; gate < g.gates(); ++gate) {
      Pack(weights + gate * g.hidden * g.output,
           MatrixView{g.hidden, g.output, g.output, 1}.Transposed(), g.gates(), gate, scratch);
    }
    if (g.projects)
      Pack(projection, MatrixView{g.output, g.hidden, g.hidden, 1}.Transposed(), 1, 0, more);
    ForSteps(g, g.gate_columns() * g.output, [&](int64_t k, const auto& divide) {
      const int64_t step = d.StepAt(k);
      divide(g.hidden,
             [&](Range rows, Range units) { kernels_.forward(d, step, panels, rows, units); });
      if (!g.projects) return;
      divide(g.output,
             [&](Range rows, Range units) { kernels_.project(d, step, more, rows, units); });
    });
  }

  void Backward(const OnCpu&, const Direction<C>& d, const DirectionGradient<C>& to,
                const C* weights, const C* projection, C* scratch) const {
    const Geometry& g = d.g;
    const C* const panels = scratch;
    C* const more = scratch + PanelsOf(Vectors(g.output), g.gate_columns());
    Pack(weights, {g.gate_columns(), g.output, g.output, 1}, 1, 0, scratch);
    if (g.projects) Pack(projection, {g.output, g.hidden, g.hidden, 1}, 1, 0, more);
    ForSteps(g, g.gate_columns() * g.output, [&](int64_t done, const auto& divide) {
      const int64_t k = g.steps - 1 - done, step = d.StepAt(k),
                    later = done == 0 ? -1 : d.StepAt(k + 1);
      if (g.projects) {
        divide(g.output, [&](Range rows, Range units) {
          kernels_.add_total(d, to, step, later, panels, rows, units);
        });
        divide(g.hidden, [&](Range rows, Range units) {
          kernels_.backward_projected(d, to, step, more, rows, units);
        });
      } else {
        divide(g.hidden, [&](Range rows, Range units) {
          kernels_.backward(d, to, step, later, panels, rows, units);
        });
      }
      if (k > 0) return;
      divide(g.output,
             [&](Range rows, Range units) { kernels_.finish(d, to, panels, rows, units); });
    });
  }

  void SumColumns(const OnCpu&, int64_t rows, int64_t columns, const C* from, int64_t row,
                  OpReqType req, C* to, C* scratch) const {
    // Slices in the type of the elements, then in double, in an order that the shape fixes.
    const int64_t slices = CeilDivide(rows, kSumRows);
    ParallelFor(slices, std::max<int64_t>(1, kParallelGrain / (kSumRows * columns)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t s = begin; s < end; ++s) {
                    SumSlice(from + s * kSumRows * row, std::min(kSumRows, rows - s * kSumRows),
                             columns, row, scratch + s * columns);
                  }
                });
    for (int64_t k = 0; k < columns; ++k) {
      double sum = 0;
      for (int64_t s = 0; s < slices; ++s) sum += static_cast<double>(scratch[s * columns + k]);
      Assign(req, to, k, static_cast<C>(sum));
    }
  }

 private:
  // How a product is divided.
  struct Blocks {
    int64_t rows, inner, vectors;
    Blocks(int64_t all_rows, int64_t columns, int64_t all_inner, int64_t threads)
        : rows(std::clamp<int64_t>(RoundUp(CeilDivide(all_rows, std::max<int64_t>(threads, 1)),
                                           KernelsOf<C>().tile_rows),
                                   KernelsOf<C>().tile_rows,
                                   RoundUp(kMostRows, KernelsOf<C>().tile_rows))),
          inner(CeilDivide(std::max<int64_t>(all_inner, 1),
                           CeilDivide(std::max<int64_t>(all_inner, 1), kMostInner))),
          vectors(Vectors(columns)) {}
    int64_t Scratch(int64_t threads) const {
      return PanelsOf(vectors, inner) + threads * rows * inner;
    }
  };

  static int64_t Vectors(int64_t columns) { return CeilDivide(columns, KernelsOf<C>().lanes); }
  static int64_t PanelsOf(int64_t vectors, int64_t inner) {
    return vectors * inner * KernelsOf<C>().lanes;
  }
  static int64_t MultiplyScratch(const Geometry& g, bool backward, int64_t threads) {
    int64_t most = 0;
    const auto product = [&](int64_t rows, int64_t columns, int64_t inner) {
      most = std::max(most, Blocks(rows, columns, inner, threads).Scratch(threads));
    };
    for (const int64_t inputs : {g.inputs, g.width()}) {
      if (!backward) {
        product(g.rows(), g.gate_columns(), inputs);
      } else {
        product(g.rows(), inputs, g.gate_columns());
        product(g.gate_columns(), inputs, g.rows());
      }
    }
    if (!backward) return most;
    product(g.gate_columns(), g.output, g.rows());
    if (g.projects) product(g.output, g.hidden, g.rows());
    return most;
  }
  static int64_t SumScratch(const Geometry& g) {
    return CeilDivide(g.rows(), kSumRows) * g.gate_columns();
  }

  // The panels of b; panel v is number v * every + offset.
  void Pack(const C* b, const MatrixView& view, int64_t every, int64_t offset, C* to) const {
    const int64_t panel = PanelsOf(1, view.rows);
    ParallelFor(Vectors(view.columns),
                std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(panel, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t v = begin; v < end; ++v)
                    kernels_.pack_panels(b, view, {v, v + 1}, to + (v * every + offset) * panel);
                });
  }

  // f(k, divide) for every step, where divide(units, work) calls work(rows, vectors of units) for
  // parts that cover all. `weights`: elements of R.
  template <typename F>
  void ForSteps(const Geometry& g, int64_t weights, const F& f) const {
    const auto bytes = weights * static_cast<int64_t>(sizeof(C));
    if (bytes <= kPrivateBytes) {
      const int64_t products = std::max<int64_t>(1, g.steps * weights),
                    grain = CeilDivide(kLeastProducts, products);
      return ParallelFor(g.batch, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = 0; k < g.steps; ++k) {
          f(k, [&](int64_t units, const auto& work) {
            work(Range{begin, end}, Range{0, Vectors(units)});
          });
        }
      });
    }
    for (int64_t k = 0; k < g.steps; ++k) {
      f(k, [&](int64_t units, const auto& work) {
        const int64_t vectors = Vectors(units),
                      each = std::max<int64_t>(1, g.batch * weights / vectors);
        ParallelFor(vectors, CeilDivide(kLeastProducts, each), [&](int64_t begin, int64_t end) {
          work(Range{0, g.batch}, Range{begin, end});
        });
      });
    }
  }

  static void SumSlice(const C* from, int64_t rows, int64_t columns, int64_t row, C* to) {
    std::fill_n(to, columns, C(0));
    for (int64_t r = 0; r < rows; ++r) {
      const C* const x = from + r * row;
      for (int64_t k = 0; k < columns; ++k) to[k] += x[k];
    }
  }

  const int64_t threads_;
  const Kernels<C>& kernels_ = KernelsOf<C>();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const RnnProperty&>(base);
  Setup s = SetupOf(property, request);
  if (s.g.rows() == 0 || s.g.inputs == 0) return Refusal{"empty array"};
  const int64_t threads = std::max(request.threads, 1);
  s.h_row = SpreadRow(s.g.output);
  s.gate_row = SpreadRow(s.g.gate_columns());
  Plan plan;
  SwitchFloating(request.in[RnnProperty::kData].type, "RNN", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = AccumulatorOf<T>;
    using Steps = SimdSteps<C>;
    using Pass = RnnPass<OnCpu, Steps, T, C>;
    s.forward_scratch = Steps::ForwardScratch(s.g, threads);
    s.backward_scratch = Steps::BackwardScratch(s.g, threads);
    plan = PlanOfPass<Pass>(base, request, s);
    plan.make = [s, at = property.LengthsAt(), threads] {
      return std::make_unique<Pass>(s, at, std::make_unique<Steps>(threads));
    };
  });
  constexpr double kNanosecondsPerProduct = 0.03;  // of one thread with AVX2
  std::vector<TShape> in, out;
  for (const TensorSpec& spec : request.in) in.push_back(spec.shape);
  plan.cost += kNanosecondsPerProduct * base.ForwardFlops(in, out) / static_cast<double>(threads);
  return plan;
}

}  // namespace
}  // namespace mxtrain::rnn

MXTRAIN_OPERATOR(rnn_simd_cpu, registry) {
  registry.AddKernel(
      {"RNN", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::OfFloats(mxtrain::rnn::PlanSimd)});
}
