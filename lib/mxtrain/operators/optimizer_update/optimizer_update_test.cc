// References are the update rules as the papers and the reference system state them, element by element in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// As float32 holds them.
constexpr double kLr = 0.1f, kDecay = 0.05f, kRescale = 0.5f, kCorrection = 0.75f;
constexpr double kMomentum = 0.9, kBeta1 = 0.8, kBeta2 = 0.95, kEpsilon = 1e-3;

// New weight, then new states.
using Rule = std::function<Values(double w, double grad, double m, double v, double clip)>;

double Clip(double g, double bound) {
  return bound < 0 ? g : std::clamp(g, -bound, bound);
}

Values Sgd(double w, double grad, double, double, double clip) {
  return {w - kLr * (Clip(kRescale * grad, clip) + kDecay * w)};
}
Values Momentum(double w, double grad, double m, double, double clip) {
  const double step = kMomentum * m - kLr * (Clip(kRescale * grad, clip) + kDecay * w);
  return {w + step, step};
}
Values Nag(double w, double grad, double m, double, double clip) {
  const double g = Clip(kRescale * grad, clip) + kDecay * w, step = kMomentum * m - kLr * g;
  return {w + kMomentum * step - kLr * g, step};
}
Values AdamStep(double w, double g, double m, double v, double decay) {
  const double mean = kBeta1 * m + (1 - kBeta1) * g, var = kBeta2 * v + (1 - kBeta2) * g * g;
  return {w - kLr * kCorrection * mean / (std::sqrt(var) + kEpsilon) - kLr * decay * w, mean, var};
}
Values Adam(double w, double grad, double m, double v, double clip) {
  return AdamStep(w, Clip(kRescale * grad + kDecay * w, clip), m, v, 0);
}
Values AdamW(double w, double grad, double m, double v, double clip) {
  return AdamStep(w, Clip(kRescale * grad, clip), m, v, kDecay);
}

OperatorCase MakeCase(const std::string& op, const Rule& rule, const TShape& shape, double clip, Kwargs kwargs) {
  const auto apply = [=](const Arrays& in, const Arrays& aux, size_t which) {
    Values result;
    for (size_t i = 0; i < in[0].size(); ++i) {
      const double m = aux.size() > 0 ? aux[0][i] : 0, v = aux.size() > 1 ? aux[1][i] : 0;
      result.push_back(rule(in[0][i], in[1][i], m, v, clip)[which]);
    }
    return result;
  };
  OperatorCase c;
  c.name = format("{} {} clip {}", op, shape.ToString(), clip);
  c.op = op;
  c.kwargs = std::move(kwargs);
  c.kwargs.emplace_back("clip_gradient", format("{}", clip));
  c.shapes = {shape, shape, TShape{4}};
  c.inputs = {Uniform(-2, 2), Uniform(-3, 3), Cycle({kLr, kDecay, kRescale, kCorrection})};
  c.aux = {Uniform(-1, 1), Uniform(0.1, 1)};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.forward = [apply](const Arrays& in, const Arrays& aux) { return Arrays{apply(in, aux, 0)}; };
  c.aux_after_forward = [apply](const Arrays& in, const Arrays& aux) {
    Arrays after;
    for (size_t i = 0; i < aux.size(); ++i) after.push_back(apply(in, aux, i + 1));
    return after;
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "a dozen operations"};
  return c;
}

TEST_CASE("updates follow their rules") {
  const Kwargs momentum = {{"momentum", "0.9"}}, adam = {{"beta1", "0.8"}, {"beta2", "0.95"}, {"epsilon", "1e-3"}};
  for (const TShape& shape : {TShape{3, 5, 2, 3}, TShape{1}, TShape{0}, TShape{35001}}) {
    for (const double clip : {-1.0, 0.4}) {
      RunCase(MakeCase("sgd_update", Sgd, shape, clip, {}));
      RunCase(MakeCase("sgd_mom_update", Momentum, shape, clip, momentum));
      RunCase(MakeCase("nag_mom_update", Nag, shape, clip, momentum));
      RunCase(MakeCase("adam_update", Adam, shape, clip, adam));
      RunCase(MakeCase("adamw_update", AdamW, shape, clip, adam));
    }
  }
}

TEST_CASE("scalars are float32 whatever the weight is, and four") {
  const auto op = TestRegistry().Create("sgd_update", {});
  std::vector<DType> in = {DType::kFloat16, DType::kUnknown, DType::kUnknown}, out = {DType::kUnknown}, aux;
  CHECK(op->InferType(&in, &out, &aux));
  CHECK(in == std::vector<DType>{DType::kFloat16, DType::kFloat16, DType::kFloat32});
  std::vector<TShape> shapes = {TShape{2}, TShape{2}, TShape{3}}, out_shapes(1), aux_shapes;
  CHECK_THROWS_WITH(op->InferShape(&shapes, &out_shapes, &aux_shapes), "sgd_update: scalars has shape [3], but [4] was expected");
}

}  // namespace
}  // namespace mxtrain::test
