// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/number_loop.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/embedding_bag/embedding_bag.h"

namespace mxtrain {
namespace {

constexpr int64_t kColumns = 128;  // of a row, whose sums are kept at once
constexpr int64_t kAhead = 8;      // rows that are prefetched

// Adds to `sums` `width` numbers of each of the first `added` rows; `known` of them are given, to
// be prefetched.
template <typename A, typename T>
MXTRAIN_SIMD void SumOfRows(const int64_t* rows, int64_t added, int64_t known, const T* table,
                            int64_t stride, int64_t width, A* sums) {
  for (int64_t j = 0; j < added; ++j) {
    if (j + kAhead < known) PrefetchNumbers<false>(table + rows[j + kAhead] * stride, width);
    const T* const from = table + rows[j] * stride;
#pragma GCC ivdep
    for (int64_t k = 0; k < width; ++k) sums[k] += static_cast<A>(from[k]);
  }
}

// Of the rows' tasks, which are their numbers modulo kTasks: those in [begin, end).
constexpr int64_t kTasks = 64;
struct OwnRows {
  int64_t begin, end;
  bool Has(int64_t row) const {
    const int64_t task = row % kTasks;
    return task >= begin && task < end;
  }
};

// Each of the rows that are its own += factor * from.
template <typename A, typename T>
MXTRAIN_SIMD void AddToRows(const int64_t* rows, int64_t count, int64_t known, OwnRows own,
                            A factor, const T* from, int64_t width, T* table) {
  for (int64_t j = 0; j < count; ++j) {
    if (j + kAhead < known && own.Has(rows[j + kAhead]))
      PrefetchNumbers<true>(table + rows[j + kAhead] * width, width);
    if (!own.Has(rows[j])) continue;
    T* const to = table + rows[j] * width;
#pragma GCC ivdep
    for (int64_t k = 0; k < width; ++k)
      to[k] = static_cast<T>(static_cast<A>(to[k]) + factor * static_cast<A>(from[k]));
  }
}

class EmbeddingBagOperator final : public Operator {
 public:
  EmbeddingBagOperator(const EmbeddingBagParam& param, const TShape& data)
      : param_(param),
        rows_(static_cast<size_t>(data.Size())),
        begins_(static_cast<size_t>(data[0] + 1)) {}

  void Forward(const ForwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[EmbeddingBagProperty::kData], &out = args.out_data[0];
    ReadRows(data);
    SwitchFloating(out.type, "EmbeddingBag", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const weight = args.in_data[EmbeddingBagProperty::kWeight].template dptr<T>();
      ParallelFor(data.shape[0], TextsOf(data.shape[0]), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n)
          AverageRows(n, weight, req, out.dptr<T>() + n * param_.output_dim);
      });
    });
  }

  // Every task reads all rows and adds to those that are its own: their order is that of the data,
  // for any number of threads.
  void Backward(const BackwardArgs& args) override {
    const OpReqType req = args.req[EmbeddingBagProperty::kWeight];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[EmbeddingBagProperty::kData],
                &grad = args.in_grad[EmbeddingBagProperty::kWeight], &head = args.out_grad[0];
    ZeroBlob(OnCpu{args.ctx.run_ctx}, req, grad);
    ReadRows(data);
    const int64_t width = param_.output_dim;
    SwitchFloating(grad.type, "EmbeddingBag", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = ComputeOf<T>;
      ParallelFor(kTasks, TasksOf(KnownFrom(0)), [&](int64_t begin, int64_t end) {
        for (int64_t n = 0; n < data.shape[0]; ++n)
          AddToRows(RowsOf(n), CountOf(n), KnownFrom(n), OwnRows{begin, end},
                    static_cast<A>(ShareOf(n)), head.dptr<T>() + n * width, width, grad.dptr<T>());
      });
    });
  }

 private:
  template <typename T>
  void AverageRows(int64_t text, const T* weight, OpReqType req, T* to) const {
    using A = ComputeOf<T>;
    const A share = static_cast<A>(ShareOf(text));
    for (int64_t column = 0; column < param_.output_dim; column += kColumns) {
      const int64_t width = std::min(kColumns, param_.output_dim - column);
      A sums[kColumns] = {};
      SumOfRows(RowsOf(text), CountOf(text), KnownFrom(text), weight + column, param_.output_dim,
                width, sums);
      for (int64_t k = 0; k < width; ++k) Assign(req, to, column + k, share * sums[k]);
    }
  }

  // The least of the texts that are worth a thread.
  int64_t TextsOf(int64_t texts) const {
    return std::max<int64_t>(
        1, texts * kNumbersOfThread / std::max<int64_t>(1, KnownFrom(0) * param_.output_dim));
  }
  // The least of the tasks that are worth a thread.
  int64_t TasksOf(int64_t rows) const {
    return std::clamp<int64_t>(
        kTasks * kNumbersOfThread / std::max<int64_t>(1, rows * param_.output_dim), 1, kTasks);
  }

  const int64_t* RowsOf(int64_t text) const { return rows_.data() + BeginOf(text); }
  int64_t CountOf(int64_t text) const { return BeginOf(text + 1) - BeginOf(text); }
  int64_t KnownFrom(int64_t text) const { return begins_.back() - BeginOf(text); }
  int64_t BeginOf(int64_t text) const { return begins_[static_cast<size_t>(text)]; }
  double ShareOf(int64_t text) const {
    return 1 / static_cast<double>(std::max<int64_t>(CountOf(text), 1));
  }

  void ReadRows(const TBlob& data) {
    const int64_t length = data.shape[1];
    const auto padding = static_cast<double>(param_.padding);
    const bool pads = param_.padding >= 0;
    int64_t count = 0;
    for (int64_t n = 0; n < data.shape[0]; ++n) {
      ForNumbers(data, n * length, (n + 1) * length, [&](int64_t, double number, int64_t row) {
        rows_[static_cast<size_t>(count)] = std::clamp<int64_t>(row, 0, param_.input_dim - 1);
        count += !pads || number != padding;
      });
      begins_[static_cast<size_t>(n + 1)] = count;
    }
  }

  const EmbeddingBagParam param_;
  // The rows of the numbers that are not padding, text by text, and where those of a text begin.
  std::vector<int64_t> rows_, begins_;
};

}  // namespace

MXTRAIN_OPERATOR(embedding_bag_cpu, registry) {
  registry.AddKernel(LastKernel<OnCpu>(
      "EmbeddingBag",
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        if (!IsFloating(request.out[0].type))
          return Refusal{format("no function for {}", NameOf(request.out[0].type))};
        Plan plan = PlainPlan(base, request);
        const auto& param = static_cast<const EmbeddingBagProperty&>(base).param();
        plan.cost = MoveCost(static_cast<double>(request.in[0].shape.Size() * param.output_dim *
                                                 SizeOf(request.out[0].type)));
        plan.make = [param, data = request.in[0].shape] {
          return std::make_unique<EmbeddingBagOperator>(param, data);
        };
        return plan;
      },
      Takes::kEveryType));
}

}  // namespace mxtrain
