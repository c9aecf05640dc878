// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/number_reader.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/embedding_bag/embedding_bag.h"

namespace mxtrain {
namespace {

// to += factor * from.
template <typename A, typename T>
MXTRAIN_SIMD void AddScaled(int64_t length, A factor, const T* from, A* to) {
#pragma GCC ivdep
  for (int64_t k = 0; k < length; ++k) to[k] += factor * static_cast<A>(from[k]);
}
template <typename A, typename T>
MXTRAIN_SIMD void AddToRow(int64_t length, A factor, const T* from, T* to) {
#pragma GCC ivdep
  for (int64_t k = 0; k < length; ++k)
    to[k] = static_cast<T>(static_cast<A>(to[k]) + factor * static_cast<A>(from[k]));
}

constexpr int64_t kColumns = 128;  // of a row, whose sums are kept at once

class EmbeddingBagOperator final : public Operator {
 public:
  EmbeddingBagOperator(const EmbeddingBagParam& param, const TShape& data)
      : param_(param),
        rows_(static_cast<size_t>(data.Size())),
        shares_(static_cast<size_t>(data[0])) {}

  void Forward(const ForwardArgs& args) override {
    const OpReqType req = args.req[0];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[EmbeddingBagProperty::kData], &out = args.out_data[0];
    ReadRows(data);
    SwitchFloating(out.type, "EmbeddingBag", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const weight = args.in_data[EmbeddingBagProperty::kWeight].template dptr<T>();
      ParallelFor(data.shape[0], GrainOf(data.shape[1]), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n)
          AverageRows(n, data.shape[1], weight, req, out.dptr<T>() + n * param_.output_dim);
      });
    });
  }

  // Every task reads all numbers and adds the rows that are its own: their order is that of the
  // data, for any number of threads.
  void Backward(const BackwardArgs& args) override {
    const OpReqType req = args.req[EmbeddingBagProperty::kWeight];
    if (req == OpReqType::kNullOp) return;
    const TBlob &data = args.in_data[EmbeddingBagProperty::kData],
                &grad = args.in_grad[EmbeddingBagProperty::kWeight], &head = args.out_grad[0];
    ZeroBlob(OnCpu{args.ctx.run_ctx}, req, grad);
    ReadRows(data);
    const int64_t length = data.shape[1], width = param_.output_dim;
    constexpr int64_t kTasks = 64;
    SwitchFloating(grad.type, "EmbeddingBag", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = ComputeOf<T>;
      ParallelFor(kTasks, TasksOf(data.Size()), [&](int64_t begin, int64_t end) {
        for (int64_t n = 0; n < data.shape[0]; ++n) {
          const A share = static_cast<A>(shares_[static_cast<size_t>(n)]);
          const T* const from = head.dptr<T>() + n * width;
          for (int64_t j = 0; j < length; ++j) {
            const int64_t row = rows_[static_cast<size_t>(n * length + j)], task = row % kTasks;
            if (row >= 0 && task >= begin && task < end)
              AddToRow(width, share, from, grad.dptr<T>() + row * width);
          }
        }
      });
    });
  }

 private:
  template <typename T>
  void AverageRows(int64_t text, int64_t length, const T* weight, OpReqType req, T* to) const {
    using A = ComputeOf<T>;
    const A share = static_cast<A>(shares_[static_cast<size_t>(text)]);
    for (int64_t column = 0; column < param_.output_dim; column += kColumns) {
      const int64_t width = std::min(kColumns, param_.output_dim - column);
      A sums[kColumns] = {};
      for (int64_t j = 0; j < length; ++j) {
        const int64_t row = rows_[static_cast<size_t>(text * length + j)];
        if (row >= 0) AddScaled(width, A(1), weight + row * param_.output_dim + column, sums);
      }
      for (int64_t k = 0; k < width; ++k) Assign(req, to, column + k, share * sums[k]);
    }
  }

  int64_t GrainOf(int64_t length) const {
    return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, length * param_.output_dim));
  }
  // The least of the tasks that are worth a thread.
  int64_t TasksOf(int64_t numbers) const {
    return numbers * param_.output_dim < 2 * kParallelGrain ? 64 : 1;
  }

  // The row of each number, -1 of padding, and 1 / count of each text.
  void ReadRows(const TBlob& data) {
    const NumberReader numbers(data);
    const int64_t length = data.shape[1];
    for (int64_t n = 0; n < data.shape[0]; ++n) {
      int64_t count = 0;
      for (int64_t j = 0; j < length; ++j) {
        const int64_t row = numbers.Index(n * length + j);
        const bool real = param_.padding < 0 ||
                          numbers.Number(n * length + j) != static_cast<double>(param_.padding);
        rows_[static_cast<size_t>(n * length + j)] =
            real ? std::clamp<int64_t>(row, 0, param_.input_dim - 1) : -1;
        count += real;
      }
      shares_[static_cast<size_t>(n)] = 1 / static_cast<double>(std::max<int64_t>(count, 1));
    }
  }

  const EmbeddingBagParam param_;
  std::vector<int64_t> rows_;
  std::vector<double> shares_;
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
