// SPDX-License-Identifier: Apache-2.0
// An operator whose Forward and Backward take positional arguments, as MXNet's do.
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// y = exp(a) b + c, where c is an auxiliary state.
class ExpTimesProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "ExpTimes"; }
  std::vector<std::string> ListArguments() const override { return {"a", "b"}; }
  std::vector<std::string> ListAuxiliaryStates() const override { return {"c"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    const bool known = InferSameShape(*this, in, out);
    UnifyShape((*out)[0], &(*aux)[0], TypeString(), "c");
    return known;
  }
};

class ExpTimes final : public PositionalOperator {
 public:
  explicit ExpTimes(const NoParam&) {}
  using PositionalOperator::Backward;
  using PositionalOperator::Forward;

  void Forward(const OpContext& ctx, std::span<const TBlob> in_data, std::span<const OpReqType> req,
               std::span<const TBlob> out_data, std::span<const TBlob> aux_states) override {
    SwitchFloating(out_data[0].type, "ExpTimes", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T *a = in_data[0].dptr<T>(), *b = in_data[1].dptr<T>(), *c = aux_states[0].dptr<T>();
      Map<T>(ctx.run_ctx, out_data[0], req[0],
             [=](int64_t i) { return std::exp(A(a[i])) * A(b[i]) + A(c[i]); });
    });
  }

  // da = (y - c) dy, db = exp(a) dy: reads every array.
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad,
                std::span<const TBlob> in_data, std::span<const TBlob> out_data,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad,
                std::span<const TBlob> aux_states) override {
    SwitchFloating(out_grad[0].type, "ExpTimes", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const T *head = out_grad[0].dptr<T>(), *a = in_data[0].dptr<T>(), *y = out_data[0].dptr<T>(),
              *c = aux_states[0].dptr<T>();
      Map<T>(ctx.run_ctx, in_grad[0], req[0],
             [=](int64_t i) { return (A(y[i]) - A(c[i])) * A(head[i]); });
      Map<T>(ctx.run_ctx, in_grad[1], req[1],
             [=](int64_t i) { return std::exp(A(a[i])) * A(head[i]); });
    });
  }
};

class OnlyForward final : public PositionalOperator {
 public:
  using PositionalOperator::Forward;
  void Forward(const OpContext&, std::span<const TBlob>, std::span<const OpReqType>,
               std::span<const TBlob>, std::span<const TBlob>) override {}
};

TEST_CASE("an operator with positional arguments runs forward and backward") {
  OperatorRegistry registry;
  registry.AddProperty("ExpTimes", {}, [] { return std::make_unique<ExpTimesProperty>(); });
  registry.AddKernel(ReferenceKernel<ExpTimesProperty, ExpTimes>("ExpTimes"));
  OperatorCase c;
  c.name = "positional";
  c.op = "ExpTimes";
  c.shapes = {{3, 5}, {3, 5}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [](const Arrays& in, const Arrays& aux) {
    Values y(in[0].size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::exp(in[0][i]) * in[1][i] + aux[0][i];
    return Arrays{y};
  };
  const CaseReport report = ExamineCase(c, registry, TestBackend());
  CHECK(report.problems == std::vector<std::string>{});
  CHECK(report.trials > 10);
}

TEST_CASE("an operator with positional arguments and no Backward says so") {
  OnlyForward only_forward;
  Operator& op = only_forward;
  CHECK_THROWS_WITH(op.Backward({{}, {}, {}, {}, {}, {}, {}}),
                    doctest::Contains("Backward was called on an operator without"));
}

}  // namespace
}  // namespace mxtrain::test
