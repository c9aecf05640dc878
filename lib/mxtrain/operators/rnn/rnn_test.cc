// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "mxtrain/device/cpu/parallel.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct RnnSizes {
  std::string mode;
  int64_t steps, batch, inputs, hidden;
  int64_t layers = 1, directions = 1;
  int64_t projection = 0;  // 0: none
  bool state_outputs = false, lengths = false;

  int64_t gates() const { return mode == "lstm" ? 4 : mode == "gru" ? 3 : 1; }
  int64_t output() const { return projection > 0 ? projection : hidden; }
  bool lstm() const { return mode == "lstm"; }
};

double SigmoidOf(double x) {
  return 1 / (1 + std::exp(-x));
}

// Takes consecutive arrays out of `parameters`.
struct Reader {
  const Values& from;
  size_t at = 0;
  const double* Next(int64_t n) {
    at += static_cast<size_t>(n);
    REQUIRE(at <= from.size());
    return from.data() + at - n;
  }
};
struct CellWeights {
  const double *w, *r, *p, *bw, *br;
};

// One step of one sequence: h [output] and c [hidden] are replaced.
void StepOf(const RnnSizes& s, const CellWeights& of, int64_t inputs, const double* x, double* h,
            double* c) {
  const int64_t H = s.hidden, R = s.output();
  std::vector<double> of_x(static_cast<size_t>(s.gates() * H)), of_h = of_x,
                                                                next(static_cast<size_t>(H));
  for (int64_t k = 0; k < s.gates() * H; ++k) {
    double a = of.bw[k], b = of.br[k];
    for (int64_t i = 0; i < inputs; ++i) a += of.w[k * inputs + i] * x[i];
    for (int64_t i = 0; i < R; ++i) b += of.r[k * R + i] * h[i];
    of_x[static_cast<size_t>(k)] = a;
    of_h[static_cast<size_t>(k)] = b;
  }
  const auto sum = [&](int64_t gate, int64_t u) {
    const auto k = static_cast<size_t>(gate * H + u);
    return of_x[k] + of_h[k];
  };
  for (int64_t u = 0; u < H; ++u) {
    double& to = next[static_cast<size_t>(u)];
    if (s.mode == "rnn_relu") {
      to = std::max(sum(0, u), 0.0);
    } else if (s.mode == "rnn_tanh") {
      to = std::tanh(sum(0, u));
    } else if (s.lstm()) {
      c[u] = SigmoidOf(sum(1, u)) * c[u] + SigmoidOf(sum(0, u)) * std::tanh(sum(2, u));
      to = SigmoidOf(sum(3, u)) * std::tanh(c[u]);
    } else {
      const auto k = static_cast<size_t>(2 * H + u);
      const double r = SigmoidOf(sum(0, u)), z = SigmoidOf(sum(1, u)),
                   n = std::tanh(of_x[k] + r * of_h[k]);
      to = (1 - z) * n + z * h[u];
    }
  }
  if (s.projection == 0) {
    std::copy(next.begin(), next.end(), h);
    return;
  }
  for (int64_t i = 0; i < R; ++i) {
    h[i] = 0;
    for (int64_t u = 0; u < H; ++u) h[i] += of.p[i * H + u] * next[static_cast<size_t>(u)];
  }
}

// By definition, a sequence after the other.
Arrays RnnReference(const RnnSizes& s, const Arrays& in) {
  const int64_t T = s.steps, N = s.batch, H = s.hidden, R = s.output(), D = s.directions;
  Reader weights{in[1]};
  std::vector<CellWeights> cells(static_cast<size_t>(s.layers * D));
  for (int64_t i = 0; i < s.layers * D; ++i) {
    CellWeights& cell = cells[static_cast<size_t>(i)];
    cell.w = weights.Next(s.gates() * H * (i < D ? s.inputs : D * R));
    cell.r = weights.Next(s.gates() * H * R);
    cell.p = weights.Next(s.projection * H);
  }
  for (CellWeights& cell : cells) {
    cell.bw = weights.Next(s.gates() * H);
    cell.br = weights.Next(s.gates() * H);
  }
  CHECK(weights.at == in[1].size());
  Values x = in[0], states = in[2], cell_states = s.lstm() ? in[3] : Values();
  int64_t inputs = s.inputs;
  for (int64_t layer = 0; layer < s.layers; ++layer, inputs = D * R) {
    Values y(static_cast<size_t>(T * N * D * R));
    for (int64_t d = 0; d < D; ++d) {
      const int64_t index = layer * D + d;
      for (int64_t n = 0; n < N; ++n) {
        const int64_t length =
            s.lengths
                ? std::clamp<int64_t>(static_cast<int64_t>(in.back()[static_cast<size_t>(n)]), 0, T)
                : T;
        double* h = states.data() + (index * N + n) * R;
        double* c = s.lstm() ? cell_states.data() + (index * N + n) * H : nullptr;
        for (int64_t k = 0; k < length; ++k) {
          const int64_t t = d == 0 ? k : length - 1 - k;
          StepOf(s, cells[static_cast<size_t>(index)], inputs, x.data() + (t * N + n) * inputs, h,
                 c);
          std::copy_n(h, R, y.data() + ((t * N + n) * D + d) * R);
        }
      }
    }
    x = y;
  }
  Arrays out = {x};
  if (s.state_outputs) out.push_back(states);
  if (s.state_outputs && s.lstm()) out.push_back(cell_states);
  return out;
}

int64_t ParameterCount(const RnnSizes& s) {
  const int64_t D = s.directions, each = s.output() + 2;
  int64_t count = 0;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    count += D * s.gates() * s.hidden * (each + (layer == 0 ? s.inputs : D * s.output()));
    count += D * s.projection * s.hidden;
  }
  return count;
}

// `weights`: the largest parameter.
OperatorCase RnnCase(const RnnSizes& s, double weights = 0.6) {
  OperatorCase c;
  c.op = "RNN";
  c.kwargs = {{"mode", s.mode},
              {"state_size", std::to_string(s.hidden)},
              {"num_layers", std::to_string(s.layers)},
              {"bidirectional", s.directions == 2 ? "True" : "False"},
              {"state_outputs", s.state_outputs ? "True" : "False"},
              {"use_sequence_length", s.lengths ? "True" : "False"}};
  if (s.projection > 0) c.kwargs.emplace_back("projection_size", std::to_string(s.projection));
  c.name = "RNN";
  for (const auto& [key, value] : c.kwargs) c.name += " " + key + "=" + value;
  const int64_t states = s.layers * s.directions;
  const Generator small = Uniform(-weights, weights);
  c.shapes = {{s.steps, s.batch, s.inputs}, {ParameterCount(s)}, {states, s.batch, s.output()}};
  c.inputs = {Uniform(-1, 1), small, small};
  if (s.lstm()) {
    c.shapes.push_back({states, s.batch, s.hidden});
    c.inputs.push_back(small);
  }
  if (s.lengths) {
    c.shapes.push_back({s.batch});
    c.inputs.push_back(Cycle({3, 1, 9, 2, 0, 2.9, -1}));
    c.input_types.assign(c.shapes.size(), DType::kUnknown);
    c.input_types.back() = DType::kInt32;
  }
  c.forward = [s](const Arrays& in, const Arrays&) { return RnnReference(s, in); };
  c.tolerance = {256,
                 "sums over steps, layers and units, of functions with errors of some epsilons"};
  c.must_accept = {"ref"};
  if (s.steps * s.batch > 0) c.must_accept.push_back("simd");
  return c;
}

TEST_CASE("RNN: every cell with every option beside every other") {
  // Pairs of layers, directions, states, lengths.
  const int64_t options[][4] = {{1, 1, 0, 0}, {2, 2, 1, 1}, {1, 2, 1, 0},
                                {2, 1, 0, 1}, {1, 2, 0, 1}, {2, 1, 1, 0}};
  for (const char* mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"}) {
    for (const auto& [layers, directions, states, lengths] : options) {
      const RnnSizes s{mode, 4, 3, 2, 3, layers, directions, 0, states == 1, lengths == 1};
      RunCase(RnnCase(s));
      if (s.lstm()) {
        RnnSizes projected = s;
        projected.projection = 2;
        RunCase(RnnCase(projected));
      }
    }
  }
}

TEST_CASE("RNN: 16 bits") {
  for (const char* mode : {"rnn_tanh", "lstm", "gru"}) {
    OperatorCase c = RnnCase({mode, 3, 2, 3, 2, 2, 2, 0, true, false});
    c.types = {DType::kFloat16, DType::kBfloat16};
    RunCase(c);
  }
}

TEST_CASE("RNN: sizes") {
  for (const char* mode : {"rnn_tanh", "lstm", "gru"}) {
    RunCase(RnnCase({mode, 1, 1, 1, 1}));
    RunCase(RnnCase({mode, 2, 0, 3, 2, 2, 2, 0, true}));
    RunCase(RnnCase({mode, 0, 2, 3, 2, 1, 2, 0, true}));
    // Tiles of rows and vectors, and what is left of them.
    RunCase(RnnCase({mode, 2, 27, 5, 37, 1, 2, 0, true, true}));
    RunCase(RnnCase({mode, 3, 13, 70, 64}));
  }
  RunCase(RnnCase({"lstm", 2, 27, 5, 37, 1, 2, 21, true, true}));
}

TEST_CASE("RNN: wide and large" * doctest::test_suite("long")) {
  // Rows of a power of two; weights too large for one core's cache; long sums of products.
  OperatorCase wide = RnnCase({"lstm", 2, 3, 9, 300, 1, 1, 256}, 0.1);
  wide.types = {DType::kFloat32};
  RunCase(wide);
  OperatorCase large = RnnCase({"gru", 3, 5, 900, 320, 1, 1, 0, true}, 0.1);
  large.types = {DType::kFloat32};
  RunCase(large);
}

// All layers pass their input on, so that the factors of dropout are seen in the output.
OperatorCase DroppedCase(int64_t steps, int64_t batch, int64_t units, double p,
                         int64_t layers = 2) {
  OperatorCase c = RnnCase({"rnn_relu", steps, batch, units, units, layers});
  c.kwargs.emplace_back("p", format("{}", p));
  c.name += " dropout";
  Values weights;
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t k = 0; k < units * units; ++k) weights.push_back(k / units == k % units ? 1 : 0);
    weights.insert(weights.end(), static_cast<size_t>(units * units), 0.0);
  }
  weights.insert(weights.end(), static_cast<size_t>(2 * layers * units), 0.0);
  c.inputs = {Uniform(0.5, 2), Cycle(weights), Constant(0)};
  c.forward = nullptr;
  // Of an element that every layer keeps.
  const double keeps = std::pow(1 - p, static_cast<double>(layers - 1));
  c.check = [keeps](const CaseResult& r) {
    std::vector<std::string> problems;
    double kept = 0;
    const double slack = r.type == DType::kFloat64 ? 1e-6 : 1e-5;
    for (size_t i = 0; i < r.in[0].size(); ++i) {
      const double factor = r.out[0][i] == 0 ? 0 : 1 / keeps;
      kept += factor != 0;
      if (std::abs(r.out[0][i] - r.in[0][i] * factor) > slack * 4 / keeps)
        problems.push_back(format("element {} is {} for {}", i, r.out[0][i], r.in[0][i]));
      if (!r.in_grad[0].empty() &&
          std::abs(r.in_grad[0][i] - r.head[0][i] * factor) > slack * 4 / keeps)
        problems.push_back(format("gradient {} has a different factor", i));
    }
    const double n = static_cast<double>(r.in[0].size());
    if (std::abs(kept - n * keeps) > 5 * std::sqrt(n * keeps * (1 - keeps)))
      problems.push_back(format("{} of {} elements kept", kept, n));
    return problems;
  };
  return c;
}

TEST_CASE("RNN: dropout between layers, in training only") {
  RunCase(DroppedCase(5, 7, 19, 0.25));
  RunCase(DroppedCase(7, 13, 40, 0.6));
  RunCase(DroppedCase(5, 7, 19, 0.5, 3));  // independent draws for each layer
  OperatorCase evaluated = DroppedCase(3, 2, 5, 0.25);
  evaluated.is_train = false;
  evaluated.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    for (size_t i = 0; i < r.in[0].size(); ++i) {
      if (std::abs(r.out[0][i] - r.in[0][i]) > 1e-5)
        problems.push_back(format("element {} is {} for {}", i, r.out[0][i], r.in[0][i]));
    }
    return problems;
  };
  RunCase(evaluated);
}

// Divided over sequences and over units, with draws.
TEST_CASE("RNN: any number of threads gives the same bits") {
  for (const RnnSizes& s : {RnnSizes{"lstm", 3, 11, 20, 50, 2, 2, 0, true, true},
                            RnnSizes{"gru", 2, 7, 33, 330, 2, 1, 0, true, false},
                            RnnSizes{"lstm", 2, 7, 33, 300, 2, 1, 280, true, false}}) {
    std::map<std::pair<std::string, DType>, CaseResult> first;
    OperatorCase c = RnnCase(s);
    c.kwargs.emplace_back("p", "0.3");
    c.forward = nullptr;
    c.types = {DType::kFloat32};
    c.check = [&first](const CaseResult& r) {
      std::vector<std::string> problems;
      const CaseResult& before = first.try_emplace({r.kernel, r.type}, r).first->second;
      if (before.out != r.out) problems.push_back("the outputs differ");
      if (before.in_grad != r.in_grad) problems.push_back("the gradients differ");
      return problems;
    };
    const int team = TeamSize();
    for (const int threads : {1, 2, 3, 7}) {
      SetTeamSize(threads);
      RunCase(c);
    }
    SetTeamSize(team);
    CHECK(!first.empty());
  }
}

TEST_CASE("RNN: shapes, names and refusals") {
  const auto create = [](Kwargs kwargs) {
    kwargs.insert(kwargs.begin(), {{"mode", "lstm"}, {"state_size", "5"}, {"num_layers", "2"}});
    return TestRegistry().Create("RNN", kwargs);
  };
  const auto property = create({{"bidirectional", "1"},
                                {"state_outputs", "1"},
                                {"use_sequence_length", "1"},
                                {"projection_size", "3"}});
  CHECK(property->ListArguments() ==
        std::vector<std::string>{"data", "parameters", "state", "state_cell", "sequence_length"});
  CHECK(property->ListOutputs() ==
        std::vector<std::string>{"output", "state_output", "statecell_output"});
  CHECK(!property->HasGradient(4));
  CHECK(property->DefaultInit(1) == R"(["uniform", {"scale": "0.4472135954999579"}])");
  std::vector<TShape> in(5), out(3), aux;
  in[0] = TShape{7, -1, 4};
  in[4] = TShape{6};
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{7, 6, 4});
  CHECK(in[1] == TShape{ParameterCount({"lstm", 7, 6, 4, 5, 2, 2, 3})});
  CHECK(in[2] == TShape{4, 6, 3});
  CHECK(in[3] == TShape{4, 6, 5});
  CHECK(out == std::vector{TShape{7, 6, 6}, TShape{4, 6, 3}, TShape{4, 6, 5}});
  in[1] = TShape{17};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("RNN: parameters has shape [17], but [860] was expected"),
                       Error);
  in.assign(5, {}), in[0] = TShape{2, 3};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       "RNN: data has shape [2, 3]; expected [steps, batch, inputs]", Error);
  CHECK_THROWS_WITH_AS(create({{"lstm_state_clip_nan", "1"}}),
                       doctest::Contains("cell states are not clipped here"), Error);
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create(
          "RNN",
          {{"mode", "gru"}, {"state_size", "5"}, {"num_layers", "2"}, {"projection_size", "3"}}),
      "RNN: projection_size = 3 is for mode = lstm only", Error);
  CHECK_THROWS_AS(create({{"p", "1"}}), Error);
}

}  // namespace
}  // namespace mxtrain::test
