// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kSequences = 2, kHeads = 3, kDepth = 4;

// Element d of part `part` of a head, of sequences [length, kSequences, kHeads * parts * kDepth].
double PartAt(const Values& x, int64_t parts, int64_t place, int64_t n, int64_t head, int64_t part,
              int64_t d) {
  return x[static_cast<size_t>(
      (((place * kSequences + n) * kHeads + head) * parts + part) * kDepth + d)];
}

// [kSequences * kHeads, queries, keys].
Values Scores(const Values& q, int64_t query_parts, const Values& k, int64_t key_parts,
              int64_t key_part, int64_t queries, int64_t keys) {
  Values y;
  for (int64_t n = 0; n < kSequences; ++n) {
    for (int64_t head = 0; head < kHeads; ++head) {
      for (int64_t i = 0; i < queries; ++i) {
        for (int64_t j = 0; j < keys; ++j) {
          double sum = 0;
          for (int64_t d = 0; d < kDepth; ++d)
            sum += PartAt(q, query_parts, i, n, head, 0, d) *
                   PartAt(k, key_parts, j, n, head, key_part, d);
          y.push_back(sum / std::sqrt(static_cast<double>(kDepth)));
        }
      }
    }
  }
  return y;
}

// [queries, kSequences, kHeads * kDepth].
Values Means(const Values& v, int64_t parts, int64_t part, const Values& attention, int64_t queries,
             int64_t keys) {
  Values y;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t n = 0; n < kSequences; ++n) {
      for (int64_t head = 0; head < kHeads; ++head) {
        for (int64_t d = 0; d < kDepth; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < keys; ++j) {
            sum += attention[static_cast<size_t>(((n * kHeads + head) * queries + i) * keys + j)] *
                   PartAt(v, parts, j, n, head, part, d);
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

void ExamineInterleaved(const std::string& op, std::vector<TShape> shapes,
                        const std::function<Values(const Arrays&)>& f) {
  OperatorCase c;
  c.op = c.name = op;
  c.kwargs = {{"heads", "3"}};
  c.shapes = std::move(shapes);
  c.inputs = {Uniform(-1, 1)};
  c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{f(in)}; };
  c.tolerance = {32, "sums of products"};
  RunCase(c);
}

TEST_CASE("interleaved_matmul: the parts of attention by their definition") {
  constexpr int64_t kQueries = 5, kKeys = 7, kWidth = kHeads * kDepth;
  ExamineInterleaved("_contrib_interleaved_matmul_selfatt_qk", {{kKeys, kSequences, 3 * kWidth}},
                     [](const Arrays& in) { return Scores(in[0], 3, in[0], 3, 1, kKeys, kKeys); });
  ExamineInterleaved("_contrib_interleaved_matmul_selfatt_valatt",
                     {{kKeys, kSequences, 3 * kWidth}, {kSequences * kHeads, kKeys, kKeys}},
                     [](const Arrays& in) { return Means(in[0], 3, 2, in[1], kKeys, kKeys); });
  ExamineInterleaved(
      "interleaved_matmul_encdec_qk",
      {{kQueries, kSequences, kWidth}, {kKeys, kSequences, 2 * kWidth}},
      [](const Arrays& in) { return Scores(in[0], 1, in[1], 2, 0, kQueries, kKeys); });
  ExamineInterleaved("interleaved_matmul_encdec_valatt",
                     {{kKeys, kSequences, 2 * kWidth}, {kSequences * kHeads, kQueries, kKeys}},
                     [](const Arrays& in) { return Means(in[0], 2, 1, in[1], kQueries, kKeys); });
}

TEST_CASE("div_sqrt_dim") {
  OperatorCase c;
  c.op = c.name = "_contrib_div_sqrt_dim";
  c.shapes = {{2, 3, 7}};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [](double x) { return x / std::sqrt(7.0); })};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {2, "a division"};
  RunCase(c);
}

TEST_CASE("interleaved_matmul: errors name the shapes") {
  const auto infer = [](const char* op, std::vector<TShape> in) {
    std::vector<TShape> out(1), aux;
    TestRegistry().Create(op, {{"heads", "3"}})->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer("interleaved_matmul_selfatt_qk", {{5, 2, 8}}),
                    "interleaved_matmul_selfatt_qk: queries_keys_values has shape [5, 2, 8]; "
                    "expected [length, batch, features] with features divisible by 9 (heads = 3, 3 "
                    "for each)");
  CHECK_THROWS_WITH(infer("interleaved_matmul_encdec_qk", {{5, 2, 6}, {5, 1, 12}}),
                    doctest::Contains("must have equal batches"));
  CHECK_THROWS_WITH(infer("interleaved_matmul_selfatt_valatt", {{5, 2, 9}, {6, 5, 4}}),
                    doctest::Contains("attention"));
}

}  // namespace
}  // namespace mxtrain::test
