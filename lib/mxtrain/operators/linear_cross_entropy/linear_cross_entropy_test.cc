// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct CrossEntropyForm {
  int64_t rows, width, classes;
  double ignored = -1e9, scale = 1;  // what is ignored, factor of the gradient
  bool by_valid = false;  // which is divided by the number of labels that are not ignored
};

// Of each row, from the definition.
Values LossesOfRows(const CrossEntropyForm& form, const Arrays& in) {
  Values losses(static_cast<size_t>(form.rows));
  for (int64_t r = 0; r < form.rows; ++r) {
    const auto label = static_cast<int64_t>(in[2][static_cast<size_t>(r)]);
    if (label < 0 || label >= form.classes) continue;
    double sum = 0, own = 0;
    for (int64_t k = 0; k < form.classes; ++k) {
      double score = in.size() > 3 ? in[3][static_cast<size_t>(k)] : 0;
      for (int64_t i = 0; i < form.width; ++i) {
        score += in[0][static_cast<size_t>(r * form.width + i)] *
                 in[1][static_cast<size_t>(k * form.width + i)];
      }
      sum += std::exp(score);
      if (k == label) own = score;
    }
    losses[static_cast<size_t>(r)] = std::log(sum) - own;
  }
  return losses;
}

// What the gradient is that of.
double TotalLoss(const CrossEntropyForm& form, const Arrays& in) {
  const Values losses = LossesOfRows(form, in);
  double sum = 0, valid = 0;
  for (size_t r = 0; r < losses.size(); ++r) {
    if (in[2][r] == form.ignored) continue;
    sum += losses[r];
    valid += 1;
  }
  return form.scale * sum / (form.by_valid ? std::max(valid, 1.0) : 1.0);
}

Arrays SlopesOfTotalLoss(const CrossEntropyForm& form, Arrays in) {
  constexpr double kStep = 1e-5;
  Arrays slopes(in.size());
  for (size_t a = 0; a < in.size(); ++a) {
    if (a == 2) continue;
    for (double& x : in[a]) {
      const double before = x;
      x = before + kStep;
      const double above = TotalLoss(form, in);
      x = before - kStep;
      const double below = TotalLoss(form, in);
      x = before;
      slopes[a].push_back((above - below) / (2 * kStep));
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
    return SlopesOfTotalLoss(form, in);
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
