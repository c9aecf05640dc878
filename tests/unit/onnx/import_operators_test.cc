// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX that are several layers here, against their definitions in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "mxtrain/onnx/import.h"
#include "tests/unit/onnx/small_models.h"

namespace mxtrain::test {
namespace {

using Values = std::vector<double>;

// All outputs for these inputs, of the sizes in the model.
std::vector<Values> AllOutputs(const Fixture& fixture, const std::vector<Values>& inputs) {
  const onnx::ImportedNet net =
      onnx::ImportModel(fixture.model, fixture.operators, {.any_batch = false});
  executor::BindRequest request;
  request.is_train = false;
  request.math = Math::kExact;
  std::map<std::string, NDArray> given;
  for (size_t i = 0; i < net.inputs.size(); ++i) {
    const std::string& name = net.inputs[i].name;
    const TShape shape(std::span<const int64_t>(fixture.model.inputs[i].dims));
    request.inputs.insert(name);
    request.shapes[name] = shape;
    given[name] = NDArray(*fixture.runtime, shape);
    SetValues(given[name], inputs[i]);
  }
  const auto executor =
      BindWithValues(*fixture.runtime, onnx::ToSymbol(net, fixture.operators), request);
  const std::map<std::string, NDArray> arrays = onnx::ArraysOf(net, *fixture.runtime);
  for (const auto& [name, array] : executor->args()) NDArray(array).CopyFrom(arrays.at(name));
  std::vector<NDArray> fed;
  for (const std::string& name : executor->input_names()) fed.push_back(given.at(name));
  executor->Forward(fed);
  std::vector<Values> outputs;
  for (const NDArray& output : executor->outputs()) outputs.push_back(GetValues(output.ToPlain()));
  return outputs;
}

Values Output(const Fixture& fixture, const std::vector<Values>& inputs) {
  return AllOutputs(fixture, inputs).at(0);
}

void CheckNear(const Values& ours, const Values& wanted, double tolerance = 1e-5) {
  REQUIRE(ours.size() == wanted.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(i);
    CHECK(ours[i] == doctest::Approx(wanted[i]).epsilon(tolerance).scale(1));
  }
}

onnx::Attributes Words(const std::string& name, const std::string& word) {
  return {{name, word}};
}

TEST_CASE_FIXTURE(Fixture, "DepthToSpace in both orders") {
  model.inputs = {Value("x", {2, 8, 2, 3})};
  const Values x = ValuesFor("x", 96);
  for (const std::string mode : {"DCR", "CRD"}) {
    model.nodes = {Node("DepthToSpace", {"x"}, "y", {{"blocksize", int64_t{2}}, {"mode", mode}})};
    Values wanted(96);
    for (int at = 0; at < 96; ++at) {
      const int w = at % 6, h = at / 6 % 4, c = at / 24 % 2, n = at / 48;
      const int block = h % 2 * 2 + w % 2;
      const int channel = mode == "DCR" ? block * 2 + c : c * 4 + block;
      wanted[static_cast<size_t>(at)] =
          x[static_cast<size_t>(((n * 8 + channel) * 2 + h / 2) * 3 + w / 2)];
    }
    CheckNear(Output(*this, {x}), wanted);
  }
}

// [heads, S, D] of queries, [shared heads, T, D] of keys, [shared heads, T, V] of values.
Values AttentionOf(const Values& q, const Values& k, const Values& v, int heads, int shared,
                   int queries, int keys, int depth, const std::function<bool(int, int)>& sees) {
  Values result;
  for (int h = 0; h < heads; ++h) {
    const int of = h / (heads / shared);
    for (int i = 0; i < queries; ++i) {
      Values weights;
      double sum = 0;
      for (int j = 0; j < keys; ++j) {
        double score = 0;
        for (int d = 0; d < depth; ++d)
          score += q[static_cast<size_t>((h * queries + i) * depth + d)] *
                   k[static_cast<size_t>((of * keys + j) * depth + d)];
        weights.push_back(sees(i, j) ? std::exp(score / std::sqrt(depth)) : 0);
        sum += weights.back();
      }
      for (int d = 0; d < depth; ++d) {
        double mean = 0;
        for (int j = 0; j < keys; ++j)
          mean +=
              weights[static_cast<size_t>(j)] * v[static_cast<size_t>((of * keys + j) * depth + d)];
        result.push_back(sum == 0 ? 0 : mean / sum);
      }
    }
  }
  return result;
}

TEST_CASE_FIXTURE(Fixture, "Attention with shared heads, masks and windows") {
  model.opset = 25;
  model.inputs = {Value("q", {1, 4, 3, 2}), Value("k", {1, 2, 5, 2}), Value("v", {1, 2, 5, 2})};
  const Values q = ValuesFor("q", 24), k = ValuesFor("k", 20), v = ValuesFor("v", 20);
  const auto wanted = [&](const std::function<bool(int, int)>& sees) {
    return AttentionOf(q, k, v, 4, 2, 3, 5, 2, sees);
  };
  model.nodes = {Node("Attention", {"q", "k", "v"}, "y")};
  CheckNear(Output(*this, {q, k, v}), wanted([](int, int) { return true; }));
  model.nodes[0].attributes = {{"is_causal", int64_t{1}}};
  CheckNear(Output(*this, {q, k, v}), wanted([](int i, int j) { return j <= i; }));
  model.nodes[0].attributes = {{"left_window_size", int64_t{0}}, {"right_window_size", int64_t{2}}};
  CheckNear(Output(*this, {q, k, v}), wanted([](int i, int j) { return j >= i && j <= i + 2; }));
  // The last query sees nothing.
  model.initializers["mask"] = {
      ElementType::kBool, {3, 5}, std::string("\1\0\1\0\0\1\1\0\0\1\0\0\0\0\0", 15)};
  model.nodes = {Node("Attention", {"q", "k", "v", "mask"}, "y")};
  const std::string mask = model.initializers["mask"].bytes;
  CheckNear(Output(*this, {q, k, v}),
            wanted([&](int i, int j) { return mask[static_cast<size_t>(i * 5 + j)] != 0; }));
}

// One direction of a recurrent layer by ONNX's definitions, in double: the states h after each
// step, [T][N][H].
int64_t GatesOf(const std::string& op) {
  return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
}
struct RecurrentReference {
  std::string op;
  int steps, batch, inputs, hidden;
  Values weight, recurrent, bias;  // of the direction: [gates H, I], [gates H, H], [2 gates H]
  std::vector<int> lengths = {};
  bool backward = false;

  int gates() const { return static_cast<int>(GatesOf(op)); }
  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // The step that is the t-th one of a sequence; -1: it has ended.
  int StepAt(int t, int n) const {
    const int length = lengths.empty() ? steps : lengths[static_cast<size_t>(n)];
    return t >= length ? -1 : backward ? length - 1 - t : t;
  }

  // x: [T, N, I]; h and c: [N, H], which become the last ones. The result: [T, N, H].
  Values Run(const Values& x, Values* h, Values* c) const {
    Values all(static_cast<size_t>(steps * batch * hidden), 0.0);
    for (int n = 0; n < batch; ++n) {
      for (int t = 0; t < steps; ++t) {
        const int step = StepAt(t, n);
        if (step < 0) continue;
        const Values before(h->begin() + n * hidden, h->begin() + (n + 1) * hidden);
        const auto sum = [&](int row, bool of_state) {
          double total = bias[static_cast<size_t>((of_state ? gates() * hidden : 0) + row)];
          for (int k = 0; k < (of_state ? hidden : inputs); ++k)
            total += of_state ? recurrent[static_cast<size_t>(row * hidden + k)] *
                                    before[static_cast<size_t>(k)]
                              : weight[static_cast<size_t>(row * inputs + k)] *
                                    x[static_cast<size_t>((step * batch + n) * inputs + k)];
          return total;
        };
        const auto both = [&](int gate, int unit) {
          return sum(gate * hidden + unit, false) + sum(gate * hidden + unit, true);
        };
        for (int u = 0; u < hidden; ++u) {
          double& state = (*h)[static_cast<size_t>(n * hidden + u)];
          if (op == "RNN") {
            state = std::tanh(both(0, u));
          } else if (op == "GRU") {
            const double z = Sigmoid(both(0, u)), r = Sigmoid(both(1, u)),
                         candidate =
                             std::tanh(sum(2 * hidden + u, false) + r * sum(2 * hidden + u, true));
            state = (1 - z) * candidate + z * before[static_cast<size_t>(u)];
          } else {
            double& cell = (*c)[static_cast<size_t>(n * hidden + u)];
            cell = Sigmoid(both(2, u)) * cell + Sigmoid(both(0, u)) * std::tanh(both(3, u));
            state = Sigmoid(both(1, u)) * std::tanh(cell);
          }
          all[static_cast<size_t>((step * batch + n) * hidden + u)] = state;
        }
      }
    }
    return all;
  }
};

Tensor FloatTensor(const std::vector<int64_t>& dims, const Values& values) {
  return Tensor::Floats(dims, std::vector<float>(values.begin(), values.end()));
}

// With both directions, initial states and lengths in one net, and none of these in
// another.
TEST_CASE_FIXTURE(Fixture, "RNN, LSTM and GRU by their definitions") {
  constexpr int kSteps = 5, kBatch = 3, kInputs = 2, kHidden = 4;
  for (const std::string op : {"RNN", "LSTM", "GRU"}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool full : {false, true}) {
        CAPTURE(op);
        CAPTURE(direction);
        CAPTURE(full);
        const int directions = direction == "bidirectional" ? 2 : 1;
        const int gates = static_cast<int>(GatesOf(op)), rows = gates * kHidden;
        const Values weight = ValuesFor("W", directions * rows * kInputs),
                     recurrent = ValuesFor("R", directions * rows * kHidden),
                     bias = full ? ValuesFor("B", directions * 2 * rows)
                                 : Values(static_cast<size_t>(directions * 2 * rows), 0.0);
        const Values x = ValuesFor("x", kSteps * kBatch * kInputs),
                     h = full ? ValuesFor("h", directions * kBatch * kHidden)
                              : Values(static_cast<size_t>(directions * kBatch * kHidden), 0.0),
                     c = full && op == "LSTM" ? ValuesFor("c", directions * kBatch * kHidden)
                                              : Values(h.size(), 0.0);
        const std::vector<int> lengths = {3, 5, 1};

        onnx::Attributes attributes{{"hidden_size", int64_t{kHidden}}, {"direction", direction}};
        if (op == "GRU") attributes["linear_before_reset"] = int64_t{1};
        model.initializers = {{"W", FloatTensor({directions, rows, kInputs}, weight)},
                              {"R", FloatTensor({directions, rows, kHidden}, recurrent)},
                              {"B", FloatTensor({directions, 2 * rows}, bias)},
                              {"lengths", Tensor::Ints({kBatch}, {3, 5, 1})}};
        model.inputs = {Value("x", {kSteps, kBatch, kInputs})};
        std::vector<std::string> inputs = {"x", "W", "R"};
        std::vector<Values> fed = {x};
        if (full) {
          inputs.insert(inputs.end(), {"B", "lengths", "h"});
          model.inputs.push_back(Value("h", {directions, kBatch, kHidden}));
          fed.push_back(h);
          if (op == "LSTM") {
            inputs.push_back("c");
            model.inputs.push_back(Value("c", {directions, kBatch, kHidden}));
            fed.push_back(c);
          }
        }
        model.nodes = {Node(op, inputs, "all", attributes)};
        model.nodes[0].outputs = {"all", "last"};
        model.outputs = {Value("all", {kSteps, directions, kBatch, kHidden}),
                         Value("last", {directions, kBatch, kHidden})};
        if (op == "LSTM") {
          model.nodes[0].outputs.push_back("cell");
          model.outputs.push_back(Value("cell", {directions, kBatch, kHidden}));
        }
        const std::vector<Values> outputs = AllOutputs(*this, fed);

        Values all(static_cast<size_t>(kSteps * directions * kBatch * kHidden)), last, cells;
        for (int d = 0; d < directions; ++d) {
          const auto part = [d](const Values& values, int count) {
            return Values(values.begin() + d * count, values.begin() + (d + 1) * count);
          };
          RecurrentReference one{op,
                                 kSteps,
                                 kBatch,
                                 kInputs,
                                 kHidden,
                                 part(weight, rows * kInputs),
                                 part(recurrent, rows * kHidden),
                                 part(bias, 2 * rows),
                                 full ? lengths : std::vector<int>(),
                                 direction == "reverse" || d == 1};
          Values state = part(h, kBatch * kHidden), cell = part(c, kBatch * kHidden);
          const Values own = one.Run(x, &state, &cell);
          for (int t = 0; t < kSteps; ++t)
            std::copy_n(own.begin() + t * kBatch * kHidden, kBatch * kHidden,
                        all.begin() + (t * directions + d) * kBatch * kHidden);
          last.insert(last.end(), state.begin(), state.end());
          cells.insert(cells.end(), cell.begin(), cell.end());
        }
        CheckNear(outputs[0], all);
        CheckNear(outputs[1], last);
        if (op == "LSTM") CheckNear(outputs[2], cells);
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "recurrent layers whose batch comes first") {
  constexpr int kSteps = 4, kBatch = 2, kInputs = 3, kHidden = 2;
  const Values weight = ValuesFor("W", kHidden * kInputs),
               recurrent = ValuesFor("R", kHidden * kHidden),
               x = ValuesFor("x", kSteps * kBatch * kInputs);
  model.initializers = {{"W", FloatTensor({1, kHidden, kInputs}, weight)},
                        {"R", FloatTensor({1, kHidden, kHidden}, recurrent)}};
  model.inputs = {Value("x", {kBatch, kSteps, kInputs})};
  model.outputs = {Value("y", {kBatch, kSteps, 1, kHidden})};
  model.nodes = {Node("RNN", {"x", "W", "R"}, "y", {{"layout", int64_t{1}}})};
  Values by_step(x.size()), state(kBatch * kHidden, 0.0), none(kBatch * kHidden, 0.0);
  for (int n = 0; n < kBatch; ++n) {
    for (int t = 0; t < kSteps; ++t)
      std::copy_n(x.begin() + (n * kSteps + t) * kInputs, kInputs,
                  by_step.begin() + (t * kBatch + n) * kInputs);
  }
  const RecurrentReference one{
      "RNN", kSteps, kBatch, kInputs, kHidden, weight, recurrent, Values(2 * kHidden, 0.0), {}};
  const Values own = one.Run(by_step, &state, &none);
  Values wanted(own.size());
  for (int n = 0; n < kBatch; ++n) {
    for (int t = 0; t < kSteps; ++t)
      std::copy_n(own.begin() + (t * kBatch + n) * kHidden, kHidden,
                  wanted.begin() + (n * kSteps + t) * kHidden);
  }
  CheckNear(Output(*this, {x}), wanted);
}

TEST_CASE_FIXTURE(Fixture, "cells that are computed otherwise are refused") {
  model.inputs = {Value("x", {-1, 4, 3})};
  const auto message = [&](const std::string& op, onnx::Attributes attributes,
                           const std::vector<std::string>& more = {}) {
    const int64_t rows = 2 * GatesOf(op);
    model.initializers = {{"W", Zeros({1, rows, 3})},
                          {"R", Zeros({1, rows, 2})},
                          {"P", FloatTensor({1, 6}, {1, 2, 3, 4, 5, 6})}};
    std::vector<std::string> inputs = {"steps", "W", "R"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    model.nodes = {Node("Transpose", {"x"}, "steps", {{"perm", std::vector<int64_t>{1, 0, 2}}}),
                   Node(op, inputs, "y", std::move(attributes))};
    return Message();
  };
  CHECK(message("LSTM", {{"clip", 3.0f}}) ==
        "LSTM 'y_node' cannot be imported: clipped cells have no equivalent");
  CHECK(
      message("LSTM", {{"input_forget", int64_t{1}}}) ==
      "LSTM 'y_node' cannot be imported: gates that are coupled (input_forget) have no equivalent");
  CHECK(message("LSTM", {}, {"", "", "", "", "P"}) ==
        "LSTM 'y_node' cannot be imported: peepholes have no equivalent");
  CHECK(
      message("LSTM", {{"activations", std::vector<std::string>{"HardSigmoid", "Tanh", "Tanh"}}}) ==
      "LSTM 'y_node' cannot be imported: activations = hardsigmoid, tanh, tanh have no equivalent");
  CHECK(message("GRU", {}) ==
        "GRU 'y_node' cannot be imported: a reset gate before the product (linear_before_reset = "
        "0) has "
        "no equivalent; PyTorch and Keras export linear_before_reset = 1");
  CHECK(message("RNN", {{"hidden_size", int64_t{3}}}) ==
        "RNN 'y_node': hidden_size is 3, and R has 2 columns");
  CHECK(message("RNN", {{"direction", std::string("sideways")}}) ==
        "RNN 'y_node': there is no direction 'sideways'");
}

double Pixel(const Values& image, int width, int height, int x, int y) {
  const bool inside = x >= 0 && y >= 0 && x < width && y < height;
  return inside ? image[static_cast<size_t>(y * width + x)] : 0;
}

// Where padding_mode moves a place of an axis.
double Moved(double at, int length, const std::string& padding, bool corners) {
  if (padding == "zeros") return at;
  const double low = corners ? 0 : -0.5, high = corners ? length - 1 : length - 0.5;
  for (int turns = 0; padding == "reflection" && turns < 100 && (at < low || at > high); ++turns)
    at = at < low ? 2 * low - at : 2 * high - at;
  return std::clamp(at, 0.0, length - 1.0);
}

TEST_CASE_FIXTURE(Fixture, "GridSample in its modes") {
  constexpr int kWidth = 5, kHeight = 4;
  model.inputs = {Value("x", {1, 1, kHeight, kWidth}), Value("g", {1, 4, 6, 2})};
  const Values x = ValuesFor("x", kWidth * kHeight);
  Values g = ValuesFor("g", 48);
  for (double& place : g) place *= 1.7;  // outside too
  const auto cubic = [](double t) {
    t = std::abs(t);
    return t <= 1  ? 1.25 * t * t * t - 2.25 * t * t + 1
           : t < 2 ? -0.75 * (t * t * t - 5 * t * t + 8 * t - 4)
                   : 0;
  };
  for (const std::string mode : {"linear", "nearest", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const bool corners : {false, true}) {
        CAPTURE(mode);
        CAPTURE(padding);
        CAPTURE(corners);
        model.nodes = {
            Node("GridSample", {"x", "g"}, "y",
                 {{"mode", mode}, {"padding_mode", padding}, {"align_corners", int64_t{corners}}})};
        model.opset = 20;
        Values wanted;
        for (size_t i = 0; i < 24; ++i) {
          const auto place = [corners](double at, int length) {
            return corners ? (at + 1) / 2 * (length - 1) : ((at + 1) * length - 1) / 2;
          };
          double at[2] = {place(g[2 * i], kWidth), place(g[2 * i + 1], kHeight)};
          if (mode == "nearest") {
            for (double& a : at) a = std::nearbyint(a);
          }
          if (mode != "cubic") {
            at[0] = Moved(at[0], kWidth, padding, corners);
            at[1] = Moved(at[1], kHeight, padding, corners);
          }
          double sum = 0;
          const int left = static_cast<int>(std::floor(at[0])),
                    top = static_cast<int>(std::floor(at[1]));
          for (int row = top - 1; row <= top + 2; ++row) {
            for (int column = left - 1; column <= left + 2; ++column) {
              const double dx = column - at[0], dy = row - at[1];
              const double weight = mode == "cubic" ? cubic(dx) * cubic(dy)
                                                    : std::max(0.0, 1 - std::abs(dx)) *
                                                          std::max(0.0, 1 - std::abs(dy));
              const int px = static_cast<int>(Moved(column, kWidth, padding, corners)),
                        py = static_cast<int>(Moved(row, kHeight, padding, corners));
              if (weight != 0) sum += weight * Pixel(x, kWidth, kHeight, px, py);
            }
          }
          wanted.push_back(sum);
        }
        CheckNear(Output(*this, {x, g}), wanted, 1e-4);
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "Resize by cubic weights, of any axis and length") {
  model.inputs = {Value("x", {2, 7})};
  model.initializers["sizes"] = Tensor::Ints({1}, {11});
  model.nodes = {Node("Resize", {"x", "", "", "sizes"}, "y",
                      {{"mode", std::string("cubic")}, {"axes", std::vector<int64_t>{1}}})};
  // Cubic convolution gives squares back where it has four elements.
  Values x;
  for (int i = 0; i < 14; ++i) x.push_back(i < 7 ? 3 : i - 7);
  model.nodes[0].attributes["cubic_coeff_a"] = -0.5f;
  const Values ours = Output(*this, {x});
  for (size_t i = 0; i < 11; ++i) {
    CHECK(ours[i] == doctest::Approx(3));
    const double place = (static_cast<double>(i) + 0.5) * 7 / 11 - 0.5;
    if (place >= 1 && place <= 5) CHECK(ours[11 + i] == doctest::Approx(place).epsilon(1e-5));
  }
  model.nodes[0].attributes = {{"mode", std::string("nearest")}, {"axes", std::vector<int64_t>{1}}};
  const Values nearest = Output(*this, {x});
  for (size_t i = 0; i < 11; ++i)
    CHECK(nearest[11 + i] ==
          std::clamp(std::ceil((static_cast<double>(i) + 0.5) * 7 / 11 - 1), 0.0, 6.0));
}

TEST_CASE_FIXTURE(Fixture, "AveragePool with padding that does not count") {
  model.inputs = {Value("x", {1, 1, 5, 6})};
  const Values x = ValuesFor("x", 30);
  for (const int64_t dilation : {1, 2}) {
    for (const bool counts : {false, true}) {
      model.nodes = {Node("AveragePool", {"x"}, "y",
                          {{"kernel_shape", std::vector<int64_t>{3, 2}},
                           {"pads", std::vector<int64_t>{0, 1, 2, 0}},
                           {"dilations", std::vector<int64_t>{dilation, 1}},
                           {"count_include_pad", int64_t{counts}}})};
      Values wanted;
      for (int64_t i = 0; i + 2 * dilation < 7; ++i) {
        for (int64_t j = -1; j + 1 < 6; ++j) {
          double sum = 0, count = 0;
          for (int64_t k = 0; k < 6; ++k) {
            const int64_t row = i + k / 2 * dilation, column = j + k % 2;
            const bool inside = row < 5 && column >= 0 && column < 6;
            count += inside || counts;
            sum += inside ? x[static_cast<size_t>(row * 6 + column)] : 0;
          }
          wanted.push_back(sum / count);
        }
      }
      CheckNear(Output(*this, {x}), wanted);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "MatMul of vectors and repeated matrices") {
  model.inputs = {Value("a", {3}), Value("b", {3})};
  model.nodes = {Node("MatMul", {"a", "b"}, "y")};
  CHECK(Output(*this, {{1, 2, 3}, {4, 5, 6}}) == Values{32});
  model.inputs = {Value("a", {2, 1, 1, 2}), Value("b", {3, 2, 1})};
  CHECK(Output(*this, {{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}}) == Values{5, 11, 17, 11, 25, 39});
  model.inputs = {Value("a", {2}), Value("b", {2, 2, 2})};
  CHECK(Output(*this, {{1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}) == Values{7, 10, 19, 22});
}

TEST_CASE_FIXTURE(Fixture, "Einsum of any number of factors, with diagonals and implied axes") {
  const auto einsum = [this](const std::string& equation, const std::vector<Values>& inputs) {
    std::vector<std::string> names;
    for (const ModelValue& input : model.inputs) names.push_back(input.name);
    model.nodes = {Node("Einsum", names, "y", Words("equation", equation))};
    return Output(*this, inputs);
  };
  const Values x{1, 2, 3, 4, 5, 6}, v{1, -1, 2}, w{2, 3};
  model.inputs = {Value("x", {2, 3}), Value("v", {3}), Value("w", {2})};
  CHECK(einsum("ij,j,i->i", {x, v, w}) == Values{2 * (1 - 2 + 6), 3 * (4 - 5 + 12)});
  CHECK(einsum("ij,j,i", {x, v, w}) == Values{10 + 33});
  CHECK(einsum("...j,j,k->k...", {x, v, w}) == Values{10, 22, 15, 33});
  model.inputs = {Value("x", {2, 2, 2})};
  CHECK(einsum("bii->b", {{1, 2, 3, 4, 5, 6, 7, 8}}) == Values{5, 13});
  CHECK(einsum("...ii->...i", {{1, 2, 3, 4, 5, 6, 7, 8}}) == Values{1, 4, 5, 8});
  CHECK(einsum("bij->jb", {{1, 2, 3, 4, 5, 6, 7, 8}}) == Values{4, 12, 6, 14});
}

TEST_CASE_FIXTURE(Fixture, "normalizations over several axes") {
  model.opset = 23;
  model.inputs = {Value("x", {2, 2, 3})};
  const Values x = ValuesFor("x", 12), scale = ValuesFor("s", 6);
  model.initializers["s"] = Tensor::Floats({2, 3}, std::vector<float>(scale.begin(), scale.end()));
  Values layer, rms;
  for (size_t n = 0; n < 2; ++n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < 6; ++i) sum += x[n * 6 + i] / 6;
    for (size_t i = 0; i < 6; ++i) square += x[n * 6 + i] * x[n * 6 + i] / 6;
    for (size_t i = 0; i < 6; ++i) {
      layer.push_back((x[n * 6 + i] - sum) / std::sqrt(square - sum * sum + 1e-5) * scale[i]);
      rms.push_back(x[n * 6 + i] / std::sqrt(square + 1e-5) * scale[i]);
    }
  }
  model.nodes = {Node("LayerNormalization", {"x", "s"}, "y", {{"axis", int64_t{1}}})};
  CHECK(Operators() == Ops{"Reshape", "LayerNorm", "Reshape"});
  CheckNear(Output(*this, {x}), layer);
  model.nodes = {Node("RMSNormalization", {"x", "s"}, "y", {{"axis", int64_t{1}}})};
  CheckNear(Output(*this, {x}), rms);
}

TEST_CASE_FIXTURE(Fixture, "quantized weights are what they stand for, values are rounded") {
  model.inputs = {Value("x", {2, 2})};
  model.initializers = {{"q", {ElementType::kInt8, {2, 2}, std::string("\x02\xfe\x03\x04", 4)}},
                        {"s", Tensor::Floats({2}, {0.5f, 2})},
                        {"one", Tensor::Scalar(1)},
                        {"zero", {ElementType::kUint8, {}, std::string("\x03", 1)}}};
  model.nodes = {Node("DequantizeLinear", {"q", "s"}, "w", {{"axis", int64_t{0}}}),
                 Node("MatMul", {"x", "w"}, "y")};
  CHECK(Import().arrays.begin()->second.ToFloats() == std::vector<float>{1, 6, -1, 8});
  CHECK(Output(*this, {{1, 0, 0, 1}}) == Values{1, -1, 6, 8});
  model.nodes = {Node("QuantizeLinear", {"x", "one", "zero"}, "y")};
  CHECK(Output(*this, {{0.5, 1.5, -7.25, 400}}) == Values{3, 5, 0, 255});
}

TEST_CASE_FIXTURE(Fixture, "elements and axes in unusual ways") {
  model.inputs = {Value("x", {2, 3})};
  const Values x{1, 2, 3, 4, 5, 6};
  const auto of = [&](ModelNode node) {
    model.nodes = {std::move(node)};
    return Output(*this, {x});
  };
  model.initializers = {{"one", Tensor::Ints({}, {1})},
                        {"i", Tensor::Ints({1, 3}, {-1, 0, 1})},
                        {"depth", Tensor::Ints({}, {3})},
                        {"values", Tensor::Floats({2}, {0, 9})},
                        {"wrap", Tensor::Ints({4}, {0, 1, 0, 2})},
                        {"cut", Tensor::Ints({4}, {0, -1, 1, 1})},
                        {"classes", Tensor::Ints({2}, {2, 0})}};
  CHECK(of(Node("CumSum", {"x", "one"}, "y", {{"exclusive", int64_t{1}}})) ==
        Values{0, 1, 3, 0, 4, 9});
  CHECK(of(Node("CumSum", {"x", "one"}, "y", {{"reverse", int64_t{1}}})) ==
        Values{6, 5, 3, 15, 11, 6});
  CHECK(of(Node("GatherElements", {"x", "i"}, "y", {{"axis", int64_t{1}}})) == Values{3, 1, 2});
  CHECK(of(Node("Pad", {"x", "wrap"}, "y", Words("mode", "wrap"))) ==
        Values{3, 1, 2, 3, 1, 2, 6, 4, 5, 6, 4, 5});
  CHECK(of(Node("Pad", {"x", "cut"}, "y")) == Values{2, 3, 0, 5, 6, 0, 0, 0, 0});
  CHECK(of(Node("Trilu", {"x", "one"}, "y")) == Values{0, 2, 3, 0, 0, 6});
  CHECK(of(Node("Trilu", {"x"}, "y", {{"upper", int64_t{0}}})) == Values{1, 0, 0, 4, 5, 0});
  CHECK(of(Node("Hardmax", {"x"}, "y", {{"axis", int64_t{0}}})) == Values{0, 0, 0, 1, 1, 1});
  CHECK(of(Node("ReduceSumSquare", {"x"}, "y", {{"keepdims", int64_t{0}}})) == Values{91});
  CHECK(of(Node(
            "ArgMax", {"x"}, "y",
            {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}})) ==
        Values{1, 1, 1});
  CHECK(of(Node("Shrink", {"x"}, "y", {{"lambd", 2.5f}, {"bias", 1.0f}})) ==
        Values{0, 0, 2, 3, 4, 5});
  model.nodes = {Node("SplitToSequence", {"x", "one"}, "parts", {{"axis", int64_t{1}}}),
                 Node("SequenceAt", {"parts", "one"}, "y")};
  CHECK(Output(*this, {x}) == Values{2, 5});
  model.nodes = {Node("OneHot", {"classes", "depth", "values"}, "hot", {{"axis", int64_t{0}}}),
                 Node("MatMul", {"hot", "x"}, "y")};
  CHECK(Output(*this, {x}) == Values{36, 45, 54, 0, 0, 0, 9, 18, 27});
  model.nodes = {Node("NegativeLogLikelihoodLoss", {"x", "classes"}, "y")};
  CHECK(Output(*this, {x}) == Values{-3.5});
  model.inputs = {Value("x", {8})};
  model.nodes = {Node("Round", {"x"}, "y")};
  CHECK(Output(*this, {{0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6, 8388609}}) ==
        Values{0, 2, 2, 0, -2, 2, -3, 8388609});
}

TEST_CASE_FIXTURE(Fixture, "an import for the sizes of the file takes inputs that are no batch") {
  model.inputs = {Value("x", {2, 3}), Value("n", {})};
  model.nodes = {Node("Mul", {"x", "n"}, "p"),
                 Node("ReduceSum", {"p"}, "y", {{"keepdims", int64_t{0}}})};
  CHECK(Message() == "the input 'n' has no batch axis; expected [N, ...]");
  CHECK(Output(*this, {{1, 2, 3, 4, 5, 6}, {2}}) == Values{42});
}

}  // namespace
}  // namespace mxtrain::test
