// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct DecoderReference {
  int64_t steps, batch, classes;
  bool last = false, lengths = false;

  Values Rows(const Arrays& in) const {
    Values rows(static_cast<size_t>(batch * steps * 2), -1);
    for (int64_t n = 0; n < batch; ++n) {
      int64_t end = steps;
      if (lengths) {
        const double length = in[1][static_cast<size_t>(n)];
        end = std::clamp<int64_t>(static_cast<int64_t>(length), 0, steps);
      }
      std::vector<std::pair<int64_t, double>> path;  // without repetitions
      for (int64_t t = 0; t < end; ++t) {
        const auto first = in[0].begin() + (t * batch + n) * classes;
        const auto best = std::max_element(first, first + classes);
        double sum = 0;
        for (auto x = first; x != first + classes; ++x) sum += std::exp(*x - *best);
        if (path.empty() || path.back().first != best - first) path.emplace_back(best - first, 0);
        path.back().second = std::max(path.back().second, 1 / sum);
      }
      std::erase_if(path, [&](const auto& p) { return p.first == (last ? classes - 1 : 0); });
      for (size_t i = 0; i < path.size(); ++i) {
        const size_t at = (static_cast<size_t>(n * steps) + i) * 2;
        rows[at] = static_cast<double>(path[i].first);
        rows[at + 1] = path[i].second;
      }
    }
    return rows;
  }
};

void ExamineDecoder(const DecoderReference& decoder, const Generator& scores) {
  OperatorCase c;
  c.op = "ctc_greedy_decoder";
  c.name = format("ctc_greedy_decoder [{}, {}, {}]", decoder.steps, decoder.batch, decoder.classes);
  c.shapes = {{decoder.steps, decoder.batch, decoder.classes}};
  c.inputs = {scores};
  if (decoder.last) c.kwargs.emplace_back("blank_label", "last");
  if (decoder.lengths) {
    c.kwargs.emplace_back("use_data_lengths", "True");
    c.shapes.push_back(TShape{decoder.batch});
    c.inputs.push_back(Cycle({3, 0, 99, -2, 5.9}));
  }
  c.forward = [decoder](const Arrays& in, const Arrays&) { return Arrays{decoder.Rows(in)}; };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {4, "one exponential of each class"};
  c.must_accept = {"ref"};
  RunCase(c);
}

TEST_CASE("ctc_greedy_decoder") {
  // Few different scores, so that classes repeat and tie.
  const Generator scores = Cycle({0, 1, 2, 0, 2, 1, 1, 1, 3, 0, 0});
  ExamineDecoder({9, 5, 3}, scores);
  ExamineDecoder({9, 5, 3, true}, scores);
  ExamineDecoder({9, 5, 3, false, true}, scores);
  ExamineDecoder({7, 3, 70}, Uniform(-2, 2));
  ExamineDecoder({40, 2, 2, true}, Uniform(-2, 2));
  ExamineDecoder({1, 1, 1}, Constant(1));
  ExamineDecoder({0, 2, 3}, Constant(1));
  ExamineDecoder({3, 0, 3}, Constant(1));
}

TEST_CASE("ctc_greedy_decoder: shapes") {
  const auto infer = [](Kwargs kwargs, std::vector<TShape> in, TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create("ctc_greedy_decoder", kwargs)->InferShape(&in, &out, &aux);
    in.push_back(out[0]);
    return in;
  };
  CHECK(infer({{"use_data_lengths", "1"}}, {TShape{7, -1, 4}, TShape{3}}, TShape{}) ==
        std::vector{TShape{7, 3, 4}, TShape{3}, TShape{3, 7, 2}});
  CHECK_THROWS_WITH(infer({}, {TShape{7, 2}}, TShape{}),
                    "ctc_greedy_decoder: data has shape [7, 2]; expected scores [T, N, classes]");
  CHECK_THROWS_WITH(infer({}, {TShape{7, 2, 0}}, TShape{}),
                    "ctc_greedy_decoder: data has shape [7, 2, 0], which has no class");
}

}  // namespace
}  // namespace mxtrain::test
