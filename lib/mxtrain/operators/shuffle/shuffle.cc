// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/shuffle/shuffle.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "mxtrain/operator/identity.h"

namespace mxtrain {
namespace {

// A row's draw and its index; rows are sorted by them.
struct Drawn {
  float draw;
  int64_t row;
  friend bool operator<(const Drawn& a, const Drawn& b) {
    return a.draw < b.draw || (a.draw == b.draw && a.row < b.row);
  }
};

class Shuffle final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    const TShape& shape = args.in_data[0].shape;
    Drawn* order = args.ctx.workspace.dptr<Drawn>();
    const RandomDraws draws = args.ctx.requested[0].Draws();
    for (int64_t row = 0; row < shape[0]; ++row)
      order[row] = {draws.Uniform(static_cast<uint64_t>(row)), row};
    std::sort(order, order + shape[0]);
    int64_t* saved = args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<int64_t>();
    for (int64_t i = 0; i < shape[0] && saved; ++i) saved[i] = order[i].row;
    Move(
        args.in_data[0], args.out_data[0], args.req[0], [order](int64_t i) { return order[i].row; },
        [](int64_t i) { return i; });
  }
  void Backward(const BackwardArgs& args) override {
    const int64_t* saved = args.ctx.saved[0].dptr<int64_t>();
    Move(
        args.out_grad[0], args.in_grad[0], args.req[0], [](int64_t i) { return i; },
        [saved](int64_t i) { return saved[i]; });
  }

 private:
  // Row target(i) of `to` = row source(i) of `from`, or += it.
  template <typename Source, typename Target>
  static void Move(const TBlob& from, const TBlob& to, OpReqType req, Source source,
                   Target target) {
    const int64_t rows = from.shape[0], length = from.shape.Product(1, from.shape.ndim());
    SwitchReq(req, [&](auto accumulate) {
      SwitchType(from.type, "shuffle", [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr OpReqType kReq = accumulate() ? OpReqType::kAddTo : OpReqType::kWriteTo;
        const T* x = from.dptr<T>();
        T* y = to.dptr<T>();
        ParallelFor(rows, std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, length)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        for (int64_t k = 0; k < length; ++k) {
                          Assign(kReq, y, target(i) * length + k,
                                 static_cast<AccumulatorOf<T>>(x[source(i) * length + k]));
                        }
                      }
                    });
      });
    });
  }
};

Expected<Plan, Refusal> PlanShuffle(const OperatorProperty& property, const PlanRequest& request,
                                    Backend&) {
  const int64_t rows = request.in[0].shape[0];
  Plan plan = PlainPlan(property, request);
  plan.forward_workspace = rows * static_cast<int64_t>(sizeof(Drawn));
  if (request.needs_backward) plan.saved = {rows * static_cast<int64_t>(sizeof(int64_t))};
  plan.make = [] { return std::make_unique<Shuffle>(); };
  return plan;
}

}  // namespace

bool ShuffleProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  const bool known = InferSameShape(*this, in, out);
  if (known && (*in)[0].ndim() == 0)
    Throw(ErrorKind::kConfig, "shuffle: the data have no axis to shuffle along");
  return known;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(shuffle, registry) {
  using namespace mxtrain;
  registry.AddProperty("shuffle", {"_shuffle"}, [] { return std::make_unique<ShuffleProperty>(); });
  registry.AddKernel(LastKernel<OnCpu>("shuffle", PlanShuffle, Takes::kEveryType));
}
