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
