// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>
#include <random>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct GreedyCase {
  TShape shape;
  double threshold = 0;
  bool ascend = false;
  int topk = -1;
  std::vector<DType> types = kAllFloatingTypes;
};

// Looks through the whole matrix for every pair.
Arrays MatchedPairs(const GreedyCase& m, const Values& scores) {
  const int last = m.shape.ndim() - 1;
  const auto rows = static_cast<size_t>(m.shape[last - 1]),
             columns = static_cast<size_t>(m.shape[last]),
             matrices = static_cast<size_t>(m.shape.Product(0, last - 1));
  Values of_rows(matrices * rows, -1), of_columns(matrices * columns, -1);
  for (size_t b = 0; b < matrices; ++b) {
    for (int pairs = 0; m.topk < 1 || pairs <= m.topk; ++pairs) {
      double best = m.threshold;
      size_t best_row = rows, best_column = columns;
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < columns; ++c) {
          const double score = scores[(b * rows + r) * columns + c];
          if (of_rows[b * rows + r] >= 0 || of_columns[b * columns + c] >= 0) continue;
          if (m.ascend ? score < best : score > best) best = score, best_row = r, best_column = c;
        }
      }
      if (best_row == rows) break;
      of_rows[b * rows + best_row] = static_cast<double>(best_column);
      of_columns[b * columns + best_column] = static_cast<double>(best_row);
    }
  }
  return {of_rows, of_columns};
}

// `steps`: how many different scores there are, eighths from -1 on.
void ExamineMatching(const GreedyCase& m, int steps) {
  OperatorCase c;
  c.op = "bipartite_matching";
  c.name = format("bipartite_matching {} threshold {} ascend {} topk {}, {} scores",
                  m.shape.ToString(), m.threshold, m.ascend, m.topk, steps);
  c.kwargs = {{"threshold", std::to_string(m.threshold)},
              {"is_ascend", m.ascend ? "True" : "False"},
              {"topk", std::to_string(m.topk)}};
  c.shapes = {m.shape};
  c.inputs = {[steps](int64_t size, uint64_t seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    Values scores;
    for (int64_t i = 0; i < size; ++i) {
      const auto step = static_cast<double>(random() % static_cast<unsigned>(steps));
      scores.push_back(step / 8 - 1);
    }
    return scores;
  }};
  c.forward = [m](const Arrays& in, const Arrays&) { return MatchedPairs(m, in[0]); };
  c.backward = false;
  c.types = m.types;
  c.tolerance = {0, "whole numbers"};
  RunCase(c);
}

TEST_CASE("bipartite_matching") {
  // Of 100 scores few are equal, of 3 many, of 1 all.
  for (const int steps : {100, 3, 1}) {
    ExamineMatching({.shape = {7, 5}, .threshold = -1.5}, steps);
    ExamineMatching({.shape = {3, 4, 9}, .threshold = -0.75}, steps);
    ExamineMatching({.shape = {2, 2, 11, 6}, .threshold = 0.5, .ascend = true}, steps);
    ExamineMatching({.shape = {2, 8, 8}, .threshold = -2, .topk = 3}, steps);
  }
  ExamineMatching({.shape = {2, 40, 30}, .threshold = -1.5}, 5);
  ExamineMatching({.shape = {2, 250, 40}, .threshold = -1.5}, 1);  // groups of many rows
  ExamineMatching({.shape = {1, 20000, 4}, .threshold = -1.5, .types = {DType::kFloat32}}, 9);
  ExamineMatching({.shape = {1, 6, 6}, .threshold = 50}, 100);  // none
  ExamineMatching({.shape = {1, 3}, .threshold = -2, .topk = 1}, 100);
  ExamineMatching({.shape = {0, 3, 4}}, 100);
  ExamineMatching({.shape = {2, 0, 4}}, 100);
  ExamineMatching({.shape = {2, 3, 0}}, 100);
}

TEST_CASE("bipartite_matching: a score that is NaN is of no pair") {
  OperatorCase c;
  c.op = c.name = "_contrib_bipartite_matching";
  c.kwargs = {{"threshold", "0"}};
  c.shapes = {{3, 2}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  c.inputs = {Cycle({nan, 0.5, 0.25, nan, nan, nan})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 0, -1}, {1, 0}}; };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("bipartite_matching: parameters, shapes and types") {
  CHECK(Says(MessageOf([] { (void)TestRegistry().Create("bipartite_matching", {}); }),
             "_contrib_bipartite_matching needs the parameter 'threshold'"));
  const auto op = TestRegistry().Create("bipartite_matching", {{"threshold", "0.1"}});
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
  std::vector<TShape> in = {{2, TShape::kUnknown, 4}}, out(2), aux;
  CHECK(!op->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{2, TShape::kUnknown});
  CHECK(out[1] == TShape{2, 4});
  in = {TShape{5}};
  out.assign(2, TShape());
  CHECK(MessageOf([&] { op->InferShape(&in, &out, &aux); }) ==
        "_contrib_bipartite_matching: the data have shape [5]; expected [..., rows, columns]");
  OperatorCase c;
  c.op = c.name = "bipartite_matching";
  c.kwargs = {{"threshold", "0"}};
  c.shapes = {{1, 300}};
  c.inputs = {Uniform(0, 1)};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{}; };
  c.backward = false;
  c.types = {DType::kBfloat16};
  const CaseReport report = ExamineCase(c, TestRegistry(), TestBackend());
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].refusal == "the numbers of rows and columns are not exact in bfloat16");
}

}  // namespace
}  // namespace mxtrain::test
