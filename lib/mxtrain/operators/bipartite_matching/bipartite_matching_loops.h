// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/exact_integers.h"
#include "mxtrain/operator/greedy_matching.h"
#include "mxtrain/operators/bipartite_matching/bipartite_matching.h"

namespace mxtrain::bipartite_matching {

struct Geometry {
  int64_t matrices = 1, rows = 0, columns = 0;
  explicit Geometry(const TShape& scores)
      : matrices(scores.Product(0, scores.ndim() - 2)),
        rows(scores[scores.ndim() - 2]),
        columns(scores[scores.ndim() - 1]) {}
};

// Scores such that higher ones are better.
template <typename T>
struct SignedScores {
  using C = ComputeOf<T>;
  const T* data;
  int64_t rows, columns;
  C sign;
  MXTRAIN_HD C operator()(int64_t matrix, int64_t row, int64_t column) const {
    return sign * static_cast<C>(data[(matrix * rows + row) * columns + column]);
  }
  MXTRAIN_HD int64_t Columns(int64_t) const { return columns; }
};

template <typename Device>
class BipartiteMatching final : public Operator {
 public:
  explicit BipartiteMatching(const BipartiteMatchingParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const TBlob& data = args.in_data[0];
    const Geometry shape(data.shape);
    SwitchFloating(data.type, "bipartite_matching", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using C = ComputeOf<T>;
      const GreedyMatches<C> matches(args.ctx.workspace.data, shape.matrices, shape.rows,
                                     shape.columns);
      const C sign = param_.is_ascend ? C(-1) : C(1);
      const int64_t all = std::min(shape.rows, shape.columns);
      const int64_t most = param_.topk > 0 ? std::min<int64_t>(all, int64_t{param_.topk} + 1) : all;
      ForRows(device, shape.matrices, shape.rows * shape.columns,
              MatchGreedily<C, SignedScores<T>>{{data.dptr<T>(), shape.rows, shape.columns, sign},
                                                shape.rows,
                                                shape.columns,
                                                sign * static_cast<C>(param_.threshold),
                                                most,
                                                matches});
      MapOn<T>(device, args.out_data[0], args.req[0], ElementAt<C, int32_t>{matches.column_of_row});
      MapOn<T>(device, args.out_data[1], args.req[1], ElementAt<C, int32_t>{matches.row_of_column});
    });
  }

 private:
  const BipartiteMatchingParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const Geometry shape(request.in[0].shape);
  const DType type = request.in[0].type;
  const int64_t most = std::min<int64_t>(LargestExact(type), std::numeric_limits<int32_t>::max());
  if (std::max(shape.rows, shape.columns) - 1 > most)
    return Refusal{format("the numbers of rows and columns are not exact in {}", NameOf(type))};
  const int64_t bytes =
      type == DType::kFloat64
          ? GreedyMatches<double>::Bytes(shape.matrices, shape.rows, shape.columns)
          : GreedyMatches<float>::Bytes(shape.matrices, shape.rows, shape.columns);
  return ForwardPlan<BipartiteMatchingProperty, BipartiteMatching<Device>>(base, request, bytes);
}

}  // namespace mxtrain::bipartite_matching

MXTRAIN_KERNELS(bipartite_matching, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(
      LastKernel<Device>("_contrib_bipartite_matching", bipartite_matching::MakePlan<Device>));
}
