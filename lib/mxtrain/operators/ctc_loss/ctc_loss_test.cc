// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/operator/imperative.h"
#include "tests/support/naive_runtime.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

using Word = std::vector<int64_t>;

// A case of CTCLoss, and its definition: the sum over all paths, one by one.
struct CtcReference {
  int64_t steps, batch, classes, most;
  bool last = false;
  bool data_lengths = false, label_lengths = false;

  int64_t blank() const { return last ? classes - 1 : 0; }
  size_t At(int64_t t, int64_t n, int64_t k) const {
    return static_cast<size_t>((t * batch + n) * classes + k);
  }
  int64_t Steps(const Arrays& in, int64_t n) const {
    if (!data_lengths) return steps;
    return std::clamp<int64_t>(static_cast<int64_t>(in[2][static_cast<size_t>(n)]), 0, steps);
  }
  Word LabelOf(const Arrays& in, int64_t n) const {
    Word word;
    for (int64_t i = 0; i < most; ++i)
      word.push_back(static_cast<int64_t>(in[1][static_cast<size_t>(n * most + i)]));
    if (label_lengths) {
      const double length = in.back()[static_cast<size_t>(n)];
      word.resize(static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(length), 0, most)));
    } else {
      word.erase(std::find(word.begin(), word.end(), last ? -1 : 0), word.end());
    }
    return word;
  }
  Values Softmax(const Arrays& in, int64_t t, int64_t n) const {
    Values p;
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      p.push_back(std::exp(in[0][At(t, n, k)]));
      sum += p.back();
    }
    for (double& value : p) value /= sum;
    return p;
  }
  Word Collapse(const Word& path) const {
    Word word;
    int64_t before = -1;
    for (const int64_t k : path) {
      if (k != before && k != blank()) word.push_back(k);
      before = k;
    }
    return word;
  }
  // The probability of the label, and what of it each class has at each step: [steps, classes].
  double Sum(const Arrays& in, int64_t n, Values* share) const {
    const int64_t length = Steps(in, n);
    const Word word = LabelOf(in, n);
    std::vector<Values> p;
    for (int64_t t = 0; t < length; ++t) p.push_back(Softmax(in, t, n));
    share->assign(static_cast<size_t>(length * classes), 0);
    Word path(static_cast<size_t>(length), 0);
    double sum = 0;
    while (true) {
      if (Collapse(path) == word) {
        double product = 1;
        for (size_t t = 0; t < path.size(); ++t) product *= p[t][static_cast<size_t>(path[t])];
        sum += product;
        for (size_t t = 0; t < path.size(); ++t)
          (*share)[t * static_cast<size_t>(classes) + static_cast<size_t>(path[t])] += product;
      }
      size_t t = 0;
      while (t < path.size() && ++path[t] == classes) path[t++] = 0;
      if (t == path.size()) return sum;
    }
  }
  Values Loss(const Arrays& in) const {
    Values loss, share;
    for (int64_t n = 0; n < batch; ++n) {
      const double sum = Sum(in, n, &share);
      loss.push_back(sum == 0 ? 0 : -std::log(sum));  // 0: a label without a path
    }
    return loss;
  }
  Values Slopes(const Arrays& in, const Values& head) const {
    Values slopes(in[0].size(), 0), share;
    for (int64_t n = 0; n < batch; ++n) {
      const double sum = Sum(in, n, &share);
      for (int64_t t = 0; t < Steps(in, n) && sum > 0; ++t) {
        const Values p = Softmax(in, t, n);
        for (int64_t k = 0; k < classes; ++k) {
          const double of_paths = share[static_cast<size_t>(t * classes + k)] / sum;
          slopes[At(t, n, k)] =
              head[static_cast<size_t>(n)] * (p[static_cast<size_t>(k)] - of_paths);
        }
      }
    }
    return slopes;
  }
};

OperatorCase CtcCase(const CtcReference& ctc, const Generator& labels) {
  OperatorCase c;
  c.op = "CTCLoss";
  c.name = format("CTCLoss [{}, {}, {}], labels of {}{}", ctc.steps, ctc.batch, ctc.classes,
                  ctc.most, ctc.last ? ", last" : "");
  c.shapes = {{ctc.steps, ctc.batch, ctc.classes}, {ctc.batch, ctc.most}};
  c.inputs = {Uniform(-2, 2), labels};
  if (ctc.last) c.kwargs.emplace_back("blank_label", "last");
  if (ctc.data_lengths) {
    c.kwargs.emplace_back("use_data_lengths", "True");
    c.shapes.push_back(TShape{ctc.batch});
    c.inputs.push_back(Cycle({4, 2, 9, 3.5, -1, 0}));
  }
  if (ctc.label_lengths) {
    c.kwargs.emplace_back("use_label_lengths", "True");
    c.shapes.push_back(TShape{ctc.batch});
    c.inputs.push_back(Cycle({2, 0, 1, 7, -3}));
  }
  c.forward = [ctc](const Arrays& in, const Arrays&) { return Arrays{ctc.Loss(in)}; };
  c.gradient = [ctc](const Arrays& in, const Arrays&, const Arrays& head) {
    Arrays slopes(in.size());
    slopes[0] = ctc.Slopes(in, head[0]);
    return slopes;
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "logarithms of sums of exponentials, and their differences"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("CTCLoss sums over all paths") {
  // Labels of which some end early, some repeat, and one has no path.
  const Generator words = Cycle({1, 2, 0, 2, 2, 0, 0, 1, 1, 3, 3, 3, 1, 1, 2});
  RunCase(CtcCase({5, 5, 4, 3}, words));
  RunCase(CtcCase({5, 5, 4, 3, true}, Cycle({1, 2, -1, 2, 2, 0, -1, 1, 1, 0, 0, 0, 1, 1, 2})));
  RunCase(CtcCase({4, 6, 4, 3, false, true}, words));
  RunCase(CtcCase({4, 6, 4, 3, true, true}, Cycle({1, 2, -1, 2, 2, 0, -1, 1, 1})));
  const Generator whole = Cycle({1, 2, 3, 2, 2, 1});
  RunCase(CtcCase({4, 5, 4, 3, false, false, true}, whole));
  RunCase(CtcCase({5, 6, 4, 3, false, true, true}, whole));
  RunCase(CtcCase({7, 2, 3, 2}, Constant(1)));
  RunCase(CtcCase({3, 2, 5, 6}, Cycle({4, 0})));  // more labels than steps
}

TEST_CASE("CTCLoss: sizes of one and of nothing") {
  RunCase(CtcCase({1, 1, 2, 1}, Constant(1)));
  RunCase(CtcCase({3, 2, 1, 2}, Constant(0)));  // only the blank
  RunCase(CtcCase({3, 2, 3, 0}, Constant(0)));
  RunCase(CtcCase({3, 0, 3, 2}, Constant(1)));
  OperatorCase none = CtcCase({0, 2, 3, 2}, Cycle({1, 0, 0, 0}));
  none.forward = [](const Arrays&, const Arrays&) { return Arrays{{0, 0}}; };
  RunCase(none);
}

TEST_CASE("CTCLoss: the gradient is the slope of the loss") {
  OperatorCase c = CtcCase({6, 3, 3, 3}, Cycle({1, 2, 1, 2, 2, 0, 1, 0, 0}));
  c.name += ", by differences";
  c.gradient = nullptr;
  c.types = {DType::kFloat64};
  RunCase(c);
}

TEST_CASE("CTCLoss: labels of whole numbers") {
  OperatorCase c = CtcCase({4, 3, 4, 2, false, true}, Cycle({1, 2, 3, 0, 2, 2}));
  for (const DType type : {DType::kInt32, DType::kInt64, DType::kUint8}) {
    c.input_types = {DType::kUnknown, type, DType::kFloat32};
    c.types = {DType::kFloat32};
    RunCase(c);
  }
}

// As the definition, a state at a time and in probabilities, for sequences with too many paths.
// Valid while no probability of a whole path is below the least number of a long double.
struct LongCtc {
  int64_t steps, classes;
  Word word;

  Values Softmax(const Values& x, int64_t t) const {
    const CtcReference one{steps, 1, classes, 0};
    return one.Softmax({x}, t, 0);
  }
  // The probabilities of the beginnings of paths, or of their ends (backwards), [steps, states];
  // both include those of the step itself.
  std::vector<std::vector<long double>> Sums(const Values& x, bool backwards) const {
    Word state = {0};
    for (const int64_t k : word) state.insert(state.end(), {k, 0});
    if (backwards) std::reverse(state.begin(), state.end());
    std::vector<std::vector<long double>> sums;
    for (int64_t i = 0; i < steps; ++i) {
      const Values p = Softmax(x, backwards ? steps - 1 - i : i);
      std::vector<long double> now(state.size(), 0);
      for (size_t s = 0; s < state.size(); ++s) {
        if (i == 0) {
          now[s] = s < 2 ? 1 : 0;
        } else {
          const auto& before = sums.back();
          now[s] = before[s] + (s > 0 ? before[s - 1] : 0);
          if (s > 1 && state[s] != 0 && state[s] != state[s - 2]) now[s] += before[s - 2];
        }
        now[s] *= static_cast<long double>(p[static_cast<size_t>(state[s])]);
      }
      sums.push_back(std::move(now));
    }
    if (backwards) {
      std::reverse(sums.begin(), sums.end());
      for (auto& row : sums) std::reverse(row.begin(), row.end());
    }
    return sums;
  }
  static long double Total(const std::vector<std::vector<long double>>& forward) {
    const auto& end = forward.back();
    return end.back() + (end.size() > 1 ? end[end.size() - 2] : 0);
  }
};

TEST_CASE("CTCLoss of long sequences") {
  const int64_t steps = 150, classes = 11, length = 40;
  LongCtc ctc{steps, classes, {}};
  for (int64_t i = 0; i < length; ++i) ctc.word.push_back(1 + i * i % 7);
  OperatorCase c;
  c.op = "CTCLoss";
  c.name = "CTCLoss of 150 steps";
  c.shapes = {{steps, 1, classes}, {1, length}};
  c.inputs = {Uniform(-3, 3), Cycle(Values(ctc.word.begin(), ctc.word.end()))};
  c.forward = [ctc](const Arrays& in, const Arrays&) {
    return Arrays{{static_cast<double>(-std::log(LongCtc::Total(ctc.Sums(in[0], false))))}};
  };
  c.gradient = [ctc](const Arrays& in, const Arrays&, const Arrays& head) {
    const auto begins = ctc.Sums(in[0], false), ends = ctc.Sums(in[0], true);
    const long double total = LongCtc::Total(begins);
    Values slopes;
    for (int64_t t = 0; t < ctc.steps; ++t) {
      const Values p = ctc.Softmax(in[0], t);
      std::vector<long double> share(p.size(), 0);
      for (size_t s = 0; s < begins[0].size(); ++s) {
        const auto k = static_cast<size_t>(s % 2 == 0 ? 0 : ctc.word[s / 2]);
        share[k] += begins[static_cast<size_t>(t)][s] * ends[static_cast<size_t>(t)][s] /
                    (static_cast<long double>(p[k]) * total);
      }
      for (size_t k = 0; k < p.size(); ++k)
        slopes.push_back(head[0][0] * (p[k] - static_cast<double>(share[k])));
    }
    return Arrays{slopes, {}};
  };
  // In double what is summed are logarithms of some hundreds, of which digits are lost; they are in
  // double for narrower types too.
  c.types = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};
  c.tolerance = {32, "one exponential, and a difference"};
  RunCase(c);
  c.types = {DType::kFloat64};
  c.tolerance = {2048, "sums of 150 logarithms, and their differences"};
  RunCase(c);
}

// The way that nets are far from right at first: a path's probability is below the least double.
TEST_CASE("CTCLoss of improbable labels") {
  Runtime runtime(NaiveOptions(), BuiltinOperators());
  const int64_t steps = 400;
  std::vector<float> scores;
  for (int64_t t = 0; t < steps; ++t) scores.insert(scores.end(), {30, 0, 0});
  const NDArray data = NDArray::FromVector(runtime, {steps, 1, 3}, scores);
  std::vector<float> word(200, 1);
  for (size_t i = 1; i < word.size(); i += 2) word[i] = 2;
  const NDArray label = NDArray::FromVector(runtime, {1, 200}, word);
  const std::vector<NDArray> in = {data, label};
  const double loss = Invoke("CTCLoss", in)[0].ToVector()[0];
  // Every path has 200 steps at least of probability e^-30; most have exactly so many.
  CHECK(loss > 200 * 30 - 400 * std::log(2.0));
  CHECK(loss < 200 * 30);
}

TEST_CASE("CTCLoss: labels out of range") {
  Runtime runtime(NaiveOptions(), BuiltinOperators());
  const auto run = [&](std::vector<float> word, Kwargs kwargs) {
    const NDArray data = NDArray::FromVector(runtime, {3, 1, 4}, std::vector<float>(12, 0.5f));
    const NDArray label = NDArray::FromVector(runtime, {1, 2}, word);
    std::vector<NDArray> in = {data, label};
    for (const auto& [key, value] : kwargs) {
      if (key == "use_label_lengths") in.push_back(NDArray::FromVector(runtime, {1}, {2}));
    }
    return Invoke("CTCLoss", in, kwargs)[0].ToVector()[0];
  };
  CHECK_THROWS_WITH_AS(run({2, 4}, {}),
                       doctest::Contains("CTCLoss: label 4 at place 1 of sequence 0 is not in [1, "
                                         "4): of 4 classes the first one is the blank, and 0 ends "
                                         "a label"),
                       Error);
  CHECK_THROWS_WITH_AS(run({3, -1}, {{"blank_label", "last"}}),
                       doctest::Contains("label 3 at place 0 of sequence 0 is not in [0, 3): of 4 "
                                         "classes the last one is the blank, and -1 ends a label"),
                       Error);
  CHECK_THROWS_WITH_AS(run({1, 0}, {{"use_label_lengths", "True"}}),
                       doctest::Contains("label 0 at place 1"), Error);
  CHECK_THROWS_WITH_AS(run({NAN, 0}, {}), doctest::Contains("at place 0"), Error);
}

TEST_CASE("CTCLoss: shapes and types") {
  const auto infer = [](Kwargs kwargs, std::vector<TShape> in, TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create("CTCLoss", kwargs)->InferShape(&in, &out, &aux);
    in.push_back(out[0]);
    return in;
  };
  CHECK(infer({}, {TShape{7, -1, 4}, TShape{3, 5}}, TShape{}) ==
        std::vector{TShape{7, 3, 4}, TShape{3, 5}, TShape{3}});
  CHECK(infer({{"use_data_lengths", "1"}, {"use_label_lengths", "1"}},
              {TShape{7, 2, 4}, TShape{}, TShape{}, TShape{}}, TShape{}) ==
        std::vector{TShape{7, 2, 4}, TShape{2, -1}, TShape{2}, TShape{2}, TShape{2}});
  CHECK_THROWS_WITH(infer({}, {TShape{7, 2}, TShape{2, 3}}, TShape{}),
                    "CTCLoss: data has shape [7, 2]; expected scores [T, N, classes]");
  CHECK_THROWS_WITH(infer({}, {TShape{7, 2, 4}, TShape{2}}, TShape{}),
                    "CTCLoss: label has shape [2]; expected [N, labels]");
  CHECK_THROWS_WITH_AS(infer({}, {TShape{7, 2, 4}, TShape{3, 3}}, TShape{}),
                       doctest::Contains("CTCLoss: label, without its last axis, has shape [3]"),
                       Error);
  CHECK_THROWS_WITH(infer({}, {TShape{7, 2, 0}, TShape{2, 3}}, TShape{}),
                    "CTCLoss: data has shape [7, 2, 0], which has no class");
  for (const char* name : {"ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss"})
    CHECK(TestRegistry().Create(name, {})->TypeString() == "CTCLoss");
  const Kwargs both = {{"use_data_lengths", "1"}, {"use_label_lengths", "1"}};
  CHECK(TestRegistry().Create("CTCLoss", both)->ListArguments() ==
        std::vector<std::string>{"data", "label", "data_lengths", "label_lengths"});
}

}  // namespace
}  // namespace mxtrain::test
