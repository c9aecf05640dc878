// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

struct CrossEntropyForm {
  int64_t rows, width, classes;
  double ignored = -1e9, scale = 1;  // what is ignored, factor of the gradient
  bool by_valid = false;  // which is divided by the number of labels that are not ignored
};

// softmax(scores) of a row, and its log of the sum of their exponentials.
struct SoftmaxOfRow {
  Values probabilities, scores;
  double log_sum = 0;
};
SoftmaxOfRow RowOf(const CrossEntropyForm& form, const Arrays& in, int64_t row) {
  SoftmaxOfRow of;
  double sum = 0;
  for (int64_t k = 0; k < form.classes; ++k) {
    double score = in.size() > 3 ? in[3][static_cast<size_t>(k)] : 0;
    for (int64_t i = 0; i < form.width; ++i) {
      score += in[0][static_cast<size_t>(row * form.width + i)] *
               in[1][static_cast<size_t>(k * form.width + i)];
    }
    of.scores.push_back(score);
    sum += std::exp(score);
  }
  of.log_sum = std::log(sum);
  for (const double score : of.scores) of.probabilities.push_back(std::exp(score) / sum);
  return of;
}

// Of each row, from the definition.
Values LossesOfRows(const CrossEntropyForm& form, const Arrays& in) {
  Values losses(static_cast<size_t>(form.rows));
  for (int64_t r = 0; r < form.rows; ++r) {
    const auto label = static_cast<int64_t>(in[2][static_cast<size_t>(r)]);
    if (label < 0 || label >= form.classes) continue;
    const SoftmaxOfRow row = RowOf(form, in, r);
    losses[static_cast<size_t>(r)] = row.log_sum - row.scores[static_cast<size_t>(label)];
  }
  return losses;
}

// By the chain rule.
Arrays GradientOf(const CrossEntropyForm& form, const Arrays& in) {
  Arrays slopes(in.size());
  for (const size_t a : {size_t{0}, size_t{1}, size_t{3}}) {
    if (a < in.size()) slopes[a].assign(in[a].size(), 0.0);
  }
  double valid = 0;
  for (const double label : in[2]) valid += label != form.ignored;
  const double factor = form.scale / (form.by_valid ? std::max(valid, 1.0) : 1.0);
  for (int64_t r = 0; r < form.rows; ++r) {
    const double label = in[2][static_cast<size_t>(r)];
    if (label == form.ignored) continue;
    const SoftmaxOfRow row = RowOf(form, in, r);
    for (int64_t k = 0; k < form.classes; ++k) {
      const double slope = factor * (row.probabilities[static_cast<size_t>(k)] -
                                     (k == static_cast<int64_t>(label) ? 1 : 0));
      for (int64_t i = 0; i < form.width; ++i) {
        const auto x = static_cast<size_t>(r * form.width + i),
                   w = static_cast<size_t>(k * form.width + i);
        slopes[0][x] += slope * in[1][w];
        slopes[1][w] += slope * in[0][x];
      }
      if (in.size() > 3) slopes[3][static_cast<size_t>(k)] += slope;
    }
  }
  return slopes;
}

OperatorCase LinearCrossEntropyCase(const std::string& name, const CrossEntropyForm& form,
                                    const TShape& data, Kwargs kwargs) {
  OperatorCase c;
  c.name = "linear_cross_entropy " + name;
  c.op = "linear_cross_entropy";
  kwargs.emplace_back("num_hidden", std::to_string(form.classes));
  const bool bias = std::ranges::find(kwargs, std::pair<std::string, std::string>(
                                                  "no_bias", "True")) == kwargs.end();
  c.kwargs = kwargs;
  TShape rows = TShape::OfRank(data.ndim() - 1);
  for (int i = 0; i < rows.ndim(); ++i) rows[i] = data[i];
  c.shapes = {data, TShape{form.classes, form.width}, rows};
  c.inputs = {Uniform(-1, 1), Uniform(-1, 1), Labels(form.classes)};
  if (bias) {
    c.shapes.push_back(TShape{form.classes});
    c.inputs.push_back(Uniform(-1, 1));
  }
  c.forward = [form](const Arrays& in, const Arrays&) { return Arrays{LossesOfRows(form, in)}; };
  c.gradient = [form](const Arrays& in, const Arrays&, const Arrays&) {
    return GradientOf(form, in);
  };
  c.tolerance = {64, "sums over the width, then exponentials and a sum over the classes"};
  c.lowered_epsilons = 64;
  c.must_accept = {"onednn"};
  return c;
}

const Kwargs kNoBias = {{"no_bias", "True"}};

TEST_CASE("linear_cross_entropy: rows in one block, with a bias and without") {
  RunCase(LinearCrossEntropyCase("without a bias", {6, 5, 7}, TShape{2, 3, 5}, kNoBias));
  RunCase(LinearCrossEntropyCase("with a bias", {3, 4, 33}, TShape{3, 4}, {}));
  RunCase(LinearCrossEntropyCase("of one row", {1, 1, 3}, TShape{1, 1}, kNoBias));
}

TEST_CASE("linear_cross_entropy: several blocks, the last with fewer rows") {
  Kwargs kwargs = {{"block_rows", "3"}};
  RunCase(LinearCrossEntropyCase("in blocks, with a bias", {7, 3, 5}, TShape{7, 3}, kwargs));
  kwargs.emplace_back("no_bias", "True");
  RunCase(LinearCrossEntropyCase("in blocks", {8, 3, 5}, TShape{2, 4, 3}, kwargs));
}

TEST_CASE("linear_cross_entropy: ignored rows") {
  Kwargs kwargs = kNoBias;
  kwargs.insert(kwargs.end(), {{"use_ignore", "True"},
                               {"ignore_label", "2"},
                               {"normalization", "valid"},
                               {"grad_scale", "3"},
                               {"block_rows", "4"}});
  RunCase(
      LinearCrossEntropyCase("label 2 is ignored", {9, 3, 4, 2, 3, true}, TShape{9, 3}, kwargs));
  OperatorCase c = LinearCrossEntropyCase("the label -1", {5, 3, 4, -1, 1, true}, TShape{5, 3},
                                          {{"use_ignore", "True"}, {"normalization", "valid"}});
  c.inputs[2] = Cycle({0, -1, 2, -1, 1});
  RunCase(c);
}

TEST_CASE("linear_cross_entropy: divided by the number of labels") {
  Kwargs kwargs = kNoBias;
  kwargs.emplace_back("normalization", "batch");
  RunCase(LinearCrossEntropyCase("batch", {4, 3, 5, -1, 1, true}, TShape{4, 3}, kwargs));
}

TEST_CASE("linear_cross_entropy: the gradient by the chain rule is that of central differences") {
  const CrossEntropyForm form{5, 3, 4, -1, 3, true};
  Arrays in{ValuesFor("x", 15), ValuesFor("w", 12), {0, -1, 2, 3, 1}, ValuesFor("b", 4)};
  const auto total = [&] {
    const Values losses = LossesOfRows(form, in);
    return 3 * std::accumulate(losses.begin(), losses.end(), 0.0) / 4;  // the label -1 has none
  };
  const Arrays slopes = GradientOf(form, in);
  constexpr double kStep = 1e-5;
  for (const size_t a : {size_t{0}, size_t{1}, size_t{3}}) {
    for (size_t i = 0; i < in[a].size(); ++i) {
      const double before = in[a][i];
      in[a][i] = before + kStep;
      const double above = total();
      in[a][i] = before - kStep;
      const double below = total();
      in[a][i] = before;
      CHECK(slopes[a][i] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-7).scale(1));
    }
  }
}

TEST_CASE("linear_cross_entropy: mismatched shapes") {
  const auto op =
      TestRegistry().Create("linear_cross_entropy", {{"num_hidden", "7"}, {"no_bias", "True"}});
  CHECK(op->ListArguments() == std::vector<std::string>{"data", "weight", "label"});
  std::vector<TShape> in = {TShape{2, 3, 5}, TShape(), TShape()}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{7, 5});
  CHECK(in[2] == TShape{2, 3});
  CHECK(out[0] == TShape{2, 3});
  in = {TShape{2, 3, 5}, TShape{7, 4}, TShape()};
  CHECK_THROWS_WITH(op->InferShape(&in, &out, &aux),
                    doctest::Contains("weight has shape [7, 5], but [7, 4] was expected"));
  in = {TShape{5}, TShape(), TShape()};
  out = {TShape()};
  CHECK_THROWS_WITH(op->InferShape(&in, &out, &aux),
                    doctest::Contains("expected two axes or more"));
}

}  // namespace
}  // namespace mxtrain::test
