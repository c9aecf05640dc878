// SPDX-License-Identifier: Apache-2.0
// The references are the update rules as the papers and MXNet state them, element by element in
// double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/philox.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Rounded to float32.
constexpr double kLr = 0.1f, kDecay = 0.05f, kRescale = 0.5f, kCorrection = 0.75f;
constexpr double kMomentum = 0.9, kBeta1 = 0.8, kBeta2 = 0.95, kEpsilon = 1e-3, kRho = 0.85,
                 kLambda = 0.3, kBeta = 0.5, kEta = 0.02, kOwnDecay = 0.07, kScheduleDecay = 0.2,
                 kStep = 3;

double Clip(double g, double bound) {
  return bound < 0 ? g : std::clamp(g, -bound, bound);
}

// The new weight and, in place, the new states of one element.
using Rule = std::function<double(double w, double grad, Values* states, double clip)>;

double Sgd(double w, double grad, Values*, double clip) {
  return w - kLr * (Clip(kRescale * grad, clip) + kDecay * w);
}
double Momentum(double w, double grad, Values* s, double clip) {
  (*s)[0] = kMomentum * (*s)[0] - kLr * (Clip(kRescale * grad, clip) + kDecay * w);
  return w + (*s)[0];
}
double Nag(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip) + kDecay * w;
  (*s)[0] = kMomentum * (*s)[0] - kLr * g;
  return w + kMomentum * (*s)[0] - kLr * g;
}
double AdamDirection(double g, Values* s) {
  (*s)[0] = kBeta1 * (*s)[0] + (1 - kBeta1) * g;
  (*s)[1] = kBeta2 * (*s)[1] + (1 - kBeta2) * g * g;
  return kCorrection * (*s)[0] / (std::sqrt((*s)[1]) + kEpsilon);
}
double Adam(double w, double grad, Values* s, double clip) {
  return w - kLr * AdamDirection(Clip(kRescale * grad + kDecay * w, clip), s);
}
double AdamW(double w, double grad, Values* s, double clip) {
  return w - kLr * (AdamDirection(Clip(kRescale * grad, clip), s) + kDecay * w);
}
double RmsProp(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad + kDecay * w, clip);
  (*s)[0] = kRho * (*s)[0] + (1 - kRho) * g * g;
  return w - kLr * g / std::sqrt((*s)[0] + kEpsilon);
}
double RmsPropMomentum(double w, double grad, Values* s, double clip) {
  (*s)[1] = kMomentum * (*s)[1] + RmsProp(w, grad, s, clip) - w;
  return w + (*s)[1];
}
double RmsPropCentered(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad + kDecay * w, clip);
  (*s)[0] = kRho * (*s)[0] + (1 - kRho) * g * g;
  (*s)[1] = kRho * (*s)[1] + (1 - kRho) * g;
  (*s)[2] = kMomentum * (*s)[2] -
            kLr * g / std::sqrt(std::max((*s)[0] - (*s)[1] * (*s)[1], 0.0) + kEpsilon);
  return w + (*s)[2];
}
double Adagrad(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip);
  (*s)[0] += g * g;
  return w - kLr * (g / std::sqrt((*s)[0] + kEpsilon) + kDecay * w);
}
double Adadelta(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip);
  (*s)[0] = kRho * (*s)[0] + (1 - kRho) * g * g;
  const double delta = g * std::sqrt((*s)[1] + kEpsilon) / std::sqrt((*s)[0] + kEpsilon);
  (*s)[1] = kRho * (*s)[1] + (1 - kRho) * delta * delta;
  return w - kLr * (delta + kDecay * w);
}
double Ftrl(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip), n = (*s)[1] + g * g;
  (*s)[0] += g - (std::sqrt(n) - std::sqrt((*s)[1])) * w / kLr;
  (*s)[1] = n;
  const double z = (*s)[0], sign = z > 0 ? 1 : -1;
  return std::abs(z) <= kLambda ? 0
                                : (sign * kLambda - z) / ((kBeta + std::sqrt(n)) / kLr + kDecay);
}

double Sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}
double SignSgd(double w, double grad, Values*, double clip) {
  return (1 - kLr * kDecay) * w - kLr * Sign(Clip(kRescale * grad, clip));
}
double Signum(double w, double grad, Values* s, double clip) {
  (*s)[0] = kMomentum * (*s)[0] - (1 - kMomentum) * kDecay * w -
            (1 - kMomentum) * Clip(kRescale * grad, clip);
  return (1 - kLr * kOwnDecay) * w + kLr * Sign((*s)[0]);
}
double Ftml(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad + kDecay * w, clip);
  (*s)[1] = kBeta2 * (*s)[1] + (1 - kBeta2) * g * g;
  const double d = (1 - std::pow(kBeta1, kStep)) / kLr *
                   (std::sqrt((*s)[1] / (1 - std::pow(kBeta2, kStep))) + kEpsilon);
  (*s)[2] = kBeta1 * (*s)[2] + (1 - kBeta1) * g - (d - kBeta1 * (*s)[0]) * w;
  (*s)[0] = d;
  return -(*s)[2] / d;
}
double Nadam(double w, double grad, Values* s, double clip) {
  const auto momentum = [](double t) {
    return kBeta1 * (1 - 0.5 * std::pow(0.96, t * kScheduleDecay));
  };
  double product = 1;
  for (double t = 1; t <= kStep; ++t) product *= momentum(t);
  const double g = Clip(kRescale * grad + kDecay * w, clip), now = momentum(kStep),
               next = momentum(kStep + 1);
  (*s)[0] = kBeta1 * (*s)[0] + (1 - kBeta1) * g;
  (*s)[1] = kBeta2 * (*s)[1] + (1 - kBeta2) * g * g;
  const double mean = (1 - now) * g / (1 - product) + next * (*s)[0] / (1 - product * next),
               square = (*s)[1] / (1 - std::pow(kBeta2, kStep));
  return w - kLr * mean / (std::sqrt(square) + kEpsilon);
}
double Adamax(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad + kDecay * w, clip);
  (*s)[0] = kBeta1 * (*s)[0] + (1 - kBeta1) * g;
  (*s)[1] = std::max(kBeta2 * (*s)[1], std::abs(g));
  return w - kLr * kCorrection * (*s)[0] / (*s)[1];
}
double Lion(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip), direction = kBeta1 * (*s)[0] + (1 - kBeta1) * g;
  (*s)[0] = kBeta2 * (*s)[0] + (1 - kBeta2) * g;
  return w - kLr * (Sign(direction) + kDecay * w);
}
double Dcasgd(double w, double grad, Values* s, double clip) {
  const double g = Clip(kRescale * grad, clip), moved = (*s)[0];
  (*s)[0] = kMomentum * moved - kLr * (g + kDecay * w + kLambda * g * g * moved);
  return w + (*s)[0];
}

// One update of whole arrays: the new weights, then the new states.
using Update = std::function<Arrays(const Arrays& in, const Arrays& states, double clip)>;

Update ByElement(const Rule& rule) {
  return [rule](const Arrays& in, const Arrays& states, double clip) {
    Arrays after = {in[0]};
    after.insert(after.end(), states.begin(), states.end());
    for (size_t i = 0; i < in[0].size(); ++i) {
      Values own;
      for (const Values& state : states) own.push_back(state[i]);
      after[0][i] = rule(in[0][i], in[1][i], &own, clip);
      for (size_t k = 0; k < states.size(); ++k) after[k + 1][i] = own[k];
    }
    return after;
  };
}

Arrays Lamb(const Arrays& in, const Arrays& states, double clip) {
  Arrays after = {in[0], states[0], states[1]};
  Values updates;
  for (size_t i = 0; i < in[0].size(); ++i) {
    Values own = {states[0][i], states[1][i]};
    updates.push_back(AdamDirection(Clip(kRescale * in[1][i], clip), &own) + kDecay * in[0][i]);
    after[1][i] = own[0];
    after[2][i] = own[1];
  }
  const double ratio = Norm(in[0]) > 0 && Norm(updates) > 0 ? Norm(in[0]) / Norm(updates) : 1;
  for (size_t i = 0; i < updates.size(); ++i) after[0][i] -= kLr * ratio * updates[i];
  return after;
}

Arrays Lars(const Arrays& in, const Arrays& states, double clip) {
  Arrays after = {in[0], states[0]};
  Values g;
  for (double grad : in[1]) g.push_back(Clip(kRescale * grad, clip));
  const double w_norm = Norm(in[0]), g_norm = Norm(g);
  const double ratio =
      w_norm > 0 && g_norm > 0 ? kEta * w_norm / (g_norm + kDecay * w_norm + kEpsilon) : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    after[1][i] = kMomentum * states[0][i] - kLr * ratio * (g[i] + kDecay * in[0][i]);
    after[0][i] += after[1][i];
  }
  return after;
}

struct Known {
  std::string op;
  Update update;
  int states;
  Kwargs kwargs;
  double correction = kCorrection;
  // The weight moves by the sign of a sum. Numbers of a narrow type are on so coarse a grid that
  // such a sum is often exactly 0, but for its rounding.
  bool signs = false;
};

std::vector<Known> AllKnown() {
  const Kwargs adam = {{"beta1", "0.8"}, {"beta2", "0.95"}, {"epsilon", "1e-3"}};
  Kwargs nadam = adam;
  nadam.emplace_back("schedule_decay", "0.2");
  const Kwargs rmsprop = {{"rho", "0.85"}, {"momentum", "0.9"}, {"epsilon", "1e-3"}};
  return {
      {"sgd_update", ByElement(Sgd), 0, {}},
      {"sgd_mom_update", ByElement(Momentum), 1, {{"momentum", "0.9"}}},
      {"nag_mom_update", ByElement(Nag), 1, {{"momentum", "0.9"}}},
      {"adam_update", ByElement(Adam), 2, adam},
      {"adamw_update", ByElement(AdamW), 2, adam},
      {"rmsprop_update", ByElement(RmsProp), 1, rmsprop},
      {"rmsprop_mom_update", ByElement(RmsPropMomentum), 2, rmsprop},
      {"rmspropalex_update", ByElement(RmsPropCentered), 3, rmsprop},
      {"adagrad_update", ByElement(Adagrad), 1, {{"epsilon", "1e-3"}}},
      {"adadelta_update", ByElement(Adadelta), 2, {{"rho", "0.85"}, {"epsilon", "1e-3"}}},
      {"ftrl_update", ByElement(Ftrl), 2, {{"lambda1", "0.3"}, {"beta", "0.5"}}},
      {"lamb_update", Lamb, 2, adam},
      {"lars_update", Lars, 1, {{"momentum", "0.9"}, {"eta", "0.02"}, {"epsilon", "1e-3"}}},
      {"signsgd_update", ByElement(SignSgd), 0, {}},
      {"signum_update",
       ByElement(Signum),
       1,
       {{"momentum", "0.9"}, {"wd_lh", "0.07"}},
       kCorrection,
       true},
      {"ftml_update", ByElement(Ftml), 3, adam, kStep},
      {"nadam_update", ByElement(Nadam), 2, nadam, kStep},
      {"adamax_update", ByElement(Adamax), 2, {{"beta1", "0.8"}, {"beta2", "0.95"}}},
      {"lion_update", ByElement(Lion), 1, {{"beta1", "0.8"}, {"beta2", "0.95"}}, kCorrection, true},
      {"dcasgd_update", ByElement(Dcasgd), 1, {{"momentum", "0.9"}, {"lambda", "0.3"}}}};
}

// Initial states of one weight. Means and sums of squares are valid; for the centered variant the
// mean square exceeds the square of the mean.
std::vector<Generator> StatesOf(const Known& known) {
  std::vector<Generator> states = {Uniform(-1, 1), Uniform(0.1, 1), Uniform(0.1, 1)};
  if (known.op.starts_with("rmsprop") || known.op == "adagrad_update" ||
      known.op == "adadelta_update")
    states[0] = Uniform(0.2, 1);
  if (known.op == "ftml_update") states = {Uniform(2, 9), Uniform(0.1, 1), Uniform(-9, 9)};
  if (known.op == "rmspropalex_update")
    states = {Uniform(0.5, 1), Uniform(-0.5, 0.5), Uniform(-1, 1)};
  states.resize(static_cast<size_t>(known.states));
  return states;
}

OperatorCase UpdateCase(const Known& known, const TShape& shape, double clip) {
  OperatorCase c;
  c.name = format("{} {} clip {}", known.op, shape.ToString(), clip);
  c.op = known.op;
  c.kwargs = known.kwargs;
  c.kwargs.emplace_back("clip_gradient", format("{}", clip));
  c.shapes = {shape, shape, TShape{4}};
  c.inputs = {Uniform(-2, 2), Uniform(-3, 3), Cycle({kLr, kDecay, kRescale, known.correction})};
  c.aux = StatesOf(known);
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.forward = [=](const Arrays& in, const Arrays& aux) {
    return Arrays{known.update(in, aux, clip)[0]};
  };
  c.aux_after_forward = [=](const Arrays& in, const Arrays& aux) {
    Arrays after = known.update(in, aux, clip);
    after.erase(after.begin());
    return after;
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  if (known.signs) c.types = {DType::kFloat32, DType::kFloat64};
  c.tolerance = {16, "a dozen operations"};
  if (known.op == "ftrl_update") c.tolerance = {64, "a difference of roots over the rate"};
  if (known.op == "ftml_update") c.tolerance = {160, "differences of numbers up to 50"};
  return c;
}

// Every third of several weights is skipped: weight n has row n.
OperatorCase MakeJointCase(const Known& known, const std::vector<TShape>& shapes, double clip) {
  const size_t num_weights = shapes.size(), num_states = static_cast<size_t>(known.states);
  const auto is_skipped = [](size_t n) { return n % 3 == 2; };
  OperatorCase c = UpdateCase(known, shapes[0], clip);
  c.name += format(" and {} more", num_weights - 1);
  c.kwargs.emplace_back("num_weights", std::to_string(num_weights));
  c.shapes = shapes;
  c.shapes.insert(c.shapes.end(), shapes.begin(), shapes.end());
  c.shapes.push_back({static_cast<int64_t>(num_weights), 4});
  c.inputs.assign(num_weights, Uniform(-2, 2));
  c.inputs.insert(c.inputs.end(), num_weights, Uniform(-3, 3));
  c.inputs.push_back([=](int64_t, uint64_t) {
    Values rows;
    for (size_t n = 0; n < num_weights; ++n) {
      for (const double v : {kLr, kDecay, is_skipped(n) ? 0.0 : kRescale, known.correction})
        rows.push_back(v);
    }
    return rows;
  });
  c.input_types.assign(2 * num_weights, DType::kUnknown);
  c.input_types.push_back(DType::kFloat32);
  c.aux.clear();
  for (size_t n = 0; n < num_weights; ++n) {
    for (const Generator& state : StatesOf(known)) c.aux.push_back(state);
  }
  // Weight n, then its states, after the call.
  const auto after = [=](size_t n, const Arrays& in, const Arrays& aux) {
    const auto first = aux.begin() + static_cast<std::ptrdiff_t>(n * num_states);
    const Arrays states(first, first + static_cast<std::ptrdiff_t>(num_states));
    if (!is_skipped(n)) return known.update({in[n], in[num_weights + n]}, states, clip);
    Arrays same = {in[n]};
    same.insert(same.end(), states.begin(), states.end());
    return same;
  };
  c.forward = [=](const Arrays& in, const Arrays& aux) {
    Arrays weights;
    for (size_t n = 0; n < num_weights; ++n) weights.push_back(after(n, in, aux)[0]);
    return weights;
  };
  c.aux_after_forward = [=](const Arrays& in, const Arrays& aux) {
    Arrays states;
    for (size_t n = 0; n < num_weights; ++n) {
      const Arrays of_weight = after(n, in, aux);
      states.insert(states.end(), of_weight.begin() + 1, of_weight.end());
    }
    return states;
  };
  return c;
}

TEST_CASE("updates follow their rules") {
  for (const Known& known : AllKnown()) {
    for (const TShape& shape : {TShape{3, 5, 2, 3}, TShape{1}, TShape{0}, TShape{35001}}) {
      for (const double clip : {-1.0, 0.4}) RunCase(UpdateCase(known, shape, clip));
    }
  }
}

TEST_CASE(
    "several weights of different shapes, and more than one kernel takes, are updated together") {
  for (const Known& known : AllKnown()) {
    OperatorCase large = MakeJointCase(known, {{3, 5, 2, 3}, {35001}, {4, 2}}, -1);
    large.types = {DType::kFloat32};
    RunCase(large);
    RunCase(MakeJointCase(known, {{0}, {3, 5, 2, 3}, {7}, {8193}, {2, 0, 3}}, 0.4));
    if (known.op != "lamb_update" && known.op != "sgd_mom_update") continue;
    OperatorCase many = MakeJointCase(known, std::vector<TShape>(130, TShape{2, 3}), 0.4);
    many.types = {DType::kFloat32};
    RunCase(many);
  }
}

TEST_CASE("rules of signs in narrow types, with gradients that outweigh the means") {
  for (const Known& known : AllKnown()) {
    if (!known.signs) continue;
    OperatorCase c = UpdateCase(known, {3, 5, 2, 3}, 1);
    c.name += " narrow";
    c.inputs[1] = UniformAwayFrom(-3, 3, {0}, 0.5);
    c.aux = {Uniform(-0.01, 0.01)};
    c.types = {DType::kFloat16, DType::kBfloat16};
    RunCase(c);
  }
}

TEST_CASE("a factor of 0 skips the step, whatever the gradient holds") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const Known& known : AllKnown()) {
    for (const double factor : {0.0, -0.0}) {
      OperatorCase c = UpdateCase(known, {3, 5, 2, 3}, 0.4);
      c.name += format(" factor {}", factor);
      c.inputs = {Uniform(-2, 2), Cycle({inf, nan, -inf, 1}),
                  Cycle({kLr, kDecay, factor, known.correction})};
      c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
      c.aux_after_forward = nullptr;
      c.tolerance = {0, "bytes that stay"};
      RunCase(c);
    }
  }
}

// Of each index of axis 0; the state of a weight holds its number in every element.
Arrays GroupAdagrad(const Arrays& in, const Arrays& states, double clip, size_t groups) {
  Arrays after = {in[0], states[0]};
  const size_t length = in[0].size() / std::max<size_t>(groups, 1);
  for (size_t first = 0; first < in[0].size(); first += length) {
    double mean = 0;
    for (size_t i = first; i < first + length; ++i)
      mean += std::pow(Clip(kRescale * in[1][i], clip), 2) / static_cast<double>(length);
    for (size_t i = first; i < first + length; ++i) {
      after[1][i] = states[0][first] + mean;
      after[0][i] -= kLr * (Clip(kRescale * in[1][i], clip) / std::sqrt(after[1][i] + kEpsilon) +
                            kDecay * in[0][i]);
    }
  }
  return after;
}

TEST_CASE("group_adagrad_update has one mean square for each index of axis 0") {
  for (const TShape& shape : {TShape{5, 3}, TShape{3, 2, 50}, TShape{7}, TShape{1, 700}}) {
    for (const double clip : {-1.0, 0.4}) {
      const auto groups = static_cast<size_t>(shape[0]);
      const Known known{"group_adagrad_update",
                        [=](const Arrays& in, const Arrays& states, double bound) {
                          return GroupAdagrad(in, states, bound, groups);
                        },
                        1,
                        {{"epsilon", "1e-3"}}};
      OperatorCase c = UpdateCase(known, shape, clip);
      // The same number for a whole group.
      const int64_t length = shape.Size() / shape[0];
      c.aux = {[=](int64_t size, uint64_t) {
        Values history;
        for (int64_t i = 0; i < size; ++i)
          history.push_back(0.25 * static_cast<double>(1 + i / length % 3));
        return history;
      }};
      RunCase(c);
    }
  }
  OperatorCase c = MakeJointCase({"group_adagrad_update",
                                  [](const Arrays& in, const Arrays& states, double bound) {
                                    return GroupAdagrad(in, states, bound, in[0].size() / 2);
                                  },
                                  1,
                                  {{"epsilon", "1e-3"}}},
                                 {{4, 2}, {3, 2}, {5, 2}, {1, 2}}, 0.4);
  c.aux = {Constant(0.5)};
  c.aux.resize(4, Constant(0.5));
  RunCase(c);
}

// A key of random numbers, as its bytes.
constexpr double kKey = 0x1.2p-20;

TEST_CASE("sgld_update adds normal noise of the variance of the rate, the same for the same key") {
  OperatorCase c;
  c.name = c.op = "sgld_update";
  c.shapes = {{200, 100}, {200, 100}, {4}};
  c.inputs = {Constant(2), Constant(3), Cycle({0.25, 0.5, 2, kKey})};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.aux = {};
  c.check = [](const CaseResult& result) {
    // 2 - 0.25 / 2 (2 * 3 + 0.5 * 2), and a standard deviation of 0.5.
    const double expected = 2 - 0.125 * 7, deviation = 0.5;
    std::vector<std::string> problems;
    Values z;
    for (double w : result.out[0]) z.push_back((w - expected) / deviation);
    const double n = static_cast<double>(z.size());
    double mean = 0, square = 0, distance = 0;
    for (double v : z) mean += v / n, square += v * v / n;
    std::sort(z.begin(), z.end());
    for (size_t i = 0; i < z.size(); ++i) {
      const double cdf = std::erfc(-z[i] / std::sqrt(2.0)) / 2;
      distance = std::max({distance, std::abs(cdf - static_cast<double>(i) / n),
                           std::abs(cdf - static_cast<double>(i + 1) / n)});
    }
    if (std::abs(mean) > 5 / std::sqrt(n)) problems.push_back(format("mean {}", mean));
    if (std::abs(square - 1) > 5 * std::sqrt(2 / n))
      problems.push_back(format("square {}", square));
    if (distance > 2 / std::sqrt(n)) problems.push_back(format("Kolmogorov-Smirnov {}", distance));
    return problems;
  };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {16, "a few operations"};
  RunCase(c);
}

TEST_CASE("sgld_update: the noise of an element does not depend on the layout of the weight") {
  OperatorCase c;
  c.name = "sgld_update, layouts";
  c.op = "sgld_update";
  const TShape shape{16, 16, 3, 5};
  c.shapes = {shape, shape, {4}};
  c.inputs = {Constant(0), Constant(0), Cycle({0.25, 0, 2, kKey})};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.aux = {};
  c.check = [](const CaseResult& result) {
    Values draws;
    for (size_t i = 0; i < result.out[0].size(); ++i)
      draws.push_back(0.5 * static_cast<double>(NormalAt(0x35900000, 0x5a1d, 0, i)));
    std::vector<std::string> problems;
    if (result.out[0] != draws) problems.push_back("the draws are not those of the elements");
    return problems;
  };
  c.backward = false;
  c.types = {DType::kFloat32};
  c.tolerance = {0, "the same numbers again"};
  RunCase(c);
}

TEST_CASE("sgld_update has no noise at a negative rate") {
  OperatorCase c;
  c.name = "sgld_update, negative rate";
  c.op = "sgld_update";
  c.shapes = {{3, 5}, {3, 5}, {4}};
  c.inputs = {Uniform(-2, 2), Uniform(-3, 3), Cycle({-0.25, 0.5, 2, kKey})};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.aux = {};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{
        Apply(in[0], in[1], [](double w, double g) { return w + 0.125 * (2 * g + 0.5 * w); })};
  };
  c.backward = false;
  c.tolerance = {16, "a few operations"};
  RunCase(c);
}

// The products of the momenta: a quick decay leaves the factors at beta1, and with beta1 near 1 the
// product falls for hundreds of thousands of steps; without decay every factor is a half of beta1.
TEST_CASE("nadam_update: late steps, with the schedule decayed or never decaying") {
  struct Schedule {
    double beta1, decay, step;
  };
  for (const Schedule& s :
       {Schedule{0.999999, 1, 100000}, {0.99, 100, 200}, {0.9, 0, 7}, {0.999999, 0.004, 1000000}}) {
    const double beta2 = 0.95, t = s.step;
    const auto momentum = [=](double i) {
      return s.beta1 * (1 - 0.5 * std::pow(0.96, i * s.decay));
    };
    double product = 1;
    for (double i = 1; i <= t; ++i) product *= momentum(i);
    OperatorCase c;
    c.name = format("nadam_update beta1 {} decay {} step {}", s.beta1, s.decay, s.step);
    c.op = "nadam_update";
    c.kwargs = {{"beta1", format("{}", s.beta1)},
                {"beta2", "0.95"},
                {"epsilon", "1e-3"},
                {"schedule_decay", format("{}", s.decay)}};
    c.shapes = {{3, 5}, {3, 5}, {4}};
    c.inputs = {Uniform(-2, 2), Uniform(-3, 3), Cycle({kLr, 0, 1, s.step})};
    c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
    c.aux = {Uniform(-1, 1), Uniform(0.1, 1)};
    const auto after = [=](const Arrays& in, const Arrays& aux) {
      Arrays result = {in[0], aux[0], aux[1]};
      for (size_t i = 0; i < in[0].size(); ++i) {
        const double g = in[1][i];
        double &mean = result[1][i], &var = result[2][i];
        mean = s.beta1 * mean + (1 - s.beta1) * g;
        var = beta2 * var + (1 - beta2) * g * g;
        const double direction = (1 - momentum(t)) * g / (1 - product) +
                                 momentum(t + 1) * mean / (1 - product * momentum(t + 1));
        result[0][i] -= kLr * direction / (std::sqrt(var / (1 - std::pow(beta2, t))) + 1e-3);
      }
      return result;
    };
    c.forward = [=](const Arrays& in, const Arrays& aux) { return Arrays{after(in, aux)[0]}; };
    c.aux_after_forward = [=](const Arrays& in, const Arrays& aux) {
      const Arrays result = after(in, aux);
      return Arrays{result[1], result[2]};
    };
    c.backward = false;
    c.tolerance = {256, "1 - beta1, and a product of many factors"};
    RunCase(c);
  }
}

TEST_CASE("ftml_update skips a step of rate 0") {
  for (const Known& known : AllKnown()) {
    if (known.op != "ftml_update") continue;
    OperatorCase c = UpdateCase(known, {3, 5}, -1);
    c.inputs.back() = Cycle({0, kDecay, kRescale, known.correction});
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.aux_after_forward = nullptr;
    c.tolerance = {0, "bytes that stay"};
    RunCase(c);
  }
}

TEST_CASE("adamax_update leaves a weight that never had a gradient") {
  OperatorCase c;
  c.name = "adamax without a gradient";
  c.op = "adamax_update";
  c.shapes = {{3, 5}, {3, 5}, {4}};
  c.inputs = {Uniform(-2, 2), Constant(0), Cycle({kLr, 0, kRescale, kCorrection})};
  c.input_types = {DType::kUnknown, DType::kUnknown, DType::kFloat32};
  c.aux = {Constant(0)};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "bytes that stay"};
  RunCase(c);
}

TEST_CASE("scalars are four float32 for any weight type") {
  const auto op = TestRegistry().Create("sgd_update", {});
  std::vector<DType> in = {DType::kFloat16, DType::kUnknown, DType::kUnknown},
                     out = {DType::kUnknown}, aux;
  CHECK(op->InferType(&in, &out, &aux));
  CHECK(in == std::vector<DType>{DType::kFloat16, DType::kFloat16, DType::kFloat32});
  std::vector<TShape> shapes = {TShape{2}, TShape{2}, TShape{3}}, out_shapes(1), aux_shapes;
  CHECK_THROWS_WITH(op->InferShape(&shapes, &out_shapes, &aux_shapes),
                    "sgd_update: scalars has shape [3], but [4] was expected");
}

TEST_CASE("the arrays of several weights have numbered names, and match weight by weight") {
  const auto op = TestRegistry().Create("adam_update", {{"num_weights", "2"}});
  CHECK(op->ListArguments() ==
        std::vector<std::string>{"weight0", "weight1", "grad0", "grad1", "scalars"});
  CHECK(op->ListOutputs() == std::vector<std::string>{"output0", "output1"});
  CHECK(op->ListAuxiliaryStates() == std::vector<std::string>{"mean0", "var0", "mean1", "var1"});
  CHECK(op->ForwardInplaceOption() == std::vector<InplacePair>{{0, 0}, {1, 1}});
  std::vector<TShape> in = {TShape{2}, TShape{3, 4}, TShape(), TShape(), TShape()}, out(2), aux(4);
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in == std::vector<TShape>{{2}, {3, 4}, {2}, {3, 4}, {2, 4}});
  CHECK(out == std::vector<TShape>{{2}, {3, 4}});
  CHECK(aux == std::vector<TShape>{{2}, {2}, {3, 4}, {3, 4}});
  in[3] = {4, 3};
  CHECK_THROWS_WITH(op->InferShape(&in, &out, &aux),
                    "adam_update: grad1 has shape [4, 3], but [3, 4] was expected");
  CHECK_THROWS_AS(TestRegistry().Create("adam_update", {{"num_weights", "0"}}), Error);
}

}  // namespace
}  // namespace mxtrain::test
