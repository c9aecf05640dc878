// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/initializer/initializer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/device/blocked_layout.h"

namespace mxtrain {
namespace {

RuntimeOptions With(int threads, const char* engine = "threaded") {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = threads;
  return options;
}

std::vector<float> Values(Runtime& runtime, const char* name, const Kwargs& kwargs,
                          const TShape& shape, uint64_t seed = 1) {
  NDArray array(runtime, shape);
  Initializer::Create(name, kwargs)->Initialize("fc1_weight", seed, &array);
  return array.ToVector();
}

double Deviation(const std::vector<float>& values) {
  double sum = 0;
  for (float v : values) sum += double(v) * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

float Largest(const std::vector<float>& values) {
  float largest = 0;
  for (float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

TEST_CASE("constants") {
  Runtime runtime(With(1), nullptr);
  CHECK(Values(runtime, "zero", {}, {3}) == std::vector<float>{0, 0, 0});
  CHECK(Values(runtime, "Ones", {}, {2}) == std::vector<float>{1, 1});
  CHECK(Values(runtime, "constant", {{"value", "-2.5"}}, {2}) == std::vector<float>{-2.5, -2.5});
}

TEST_CASE("orthogonal: rows, or columns if there are fewer, are orthogonal and of equal length") {
  Runtime runtime(With(2), nullptr);
  for (const TShape& shape : {TShape{12, 40}, TShape{40, 3, 2, 2}, TShape{20, 20}}) {
    const std::vector<float> values = Values(runtime, "orthogonal", {{"scale", "1.5"}}, shape);
    const int64_t height = shape[0], width = shape.Product(1, shape.ndim()),
                  count = std::min(height, width);
    const auto at = [&](int64_t line, int64_t i) {
      return static_cast<double>(
          values[static_cast<size_t>(height <= width ? line * width + i : i * width + line)]);
    };
    for (int64_t a = 0; a < count; ++a) {
      for (int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < std::max(height, width); ++i) dot += at(a, i) * at(b, i);
        CHECK(std::abs(dot - (a == b ? 2.25 : 0)) < 1e-5);
      }
    }
    CHECK(values == Values(runtime, "orthogonal", {{"scale", "1.5"}}, shape));
    CHECK(values != Values(runtime, "orthogonal", {{"scale", "1.5"}}, shape, 2));
  }
  CHECK_THROWS_WITH(Values(runtime, "orthogonal", {}, {3}),
                    doctest::Contains("two dimensions or more"));
}

TEST_CASE("scales of the random initializers") {
  Runtime runtime(With(2), nullptr);
  const TShape shape = {200, 50, 3, 3};  // fan in 450, fan out 1800
  const double count = 200 * 50 * 9, tolerance = 5 / std::sqrt(2 * count);
  auto uniform_bound = [&](const char* name, const Kwargs& kwargs) {
    return Largest(Values(runtime, name, kwargs, shape));
  };
  auto deviation = [&](const char* name, const Kwargs& kwargs) {
    return Deviation(Values(runtime, name, kwargs, shape));
  };
  CHECK(uniform_bound("uniform", {}) == doctest::Approx(0.07).epsilon(1e-3));
  CHECK(deviation("uniform", {{"scale", "0.5"}}) ==
        doctest::Approx(0.5 / std::sqrt(3.0)).epsilon(tolerance));
  CHECK(deviation("normal", {}) == doctest::Approx(0.01).epsilon(tolerance));
  CHECK(uniform_bound("xavier", {}) == doctest::Approx(std::sqrt(3.0 / 1125)).epsilon(1e-3));
  CHECK(uniform_bound("xavier", {{"factor_type", "in"}, {"magnitude", "2"}}) ==
        doctest::Approx(std::sqrt(2.0 / 450)).epsilon(1e-3));
  CHECK(deviation("xavier", {{"rnd_type", "gaussian"}, {"factor_type", "out"}}) ==
        doctest::Approx(std::sqrt(3.0 / 1800)).epsilon(tolerance));
  CHECK(deviation("MSRAPrelu", {}) ==
        doctest::Approx(std::sqrt(2 / 1.0625 / 1125)).epsilon(tolerance));
  CHECK(deviation("msra_prelu", {{"factor_type", "in"}, {"slope", "0"}}) ==
        doctest::Approx(std::sqrt(2.0 / 450)).epsilon(tolerance));
}

TEST_CASE("bilinear interpolates") {
  Runtime runtime(With(1), nullptr);
  const std::vector<float> row = {0.25f, 0.75f, 0.75f, 0.25f},
                           values = Values(runtime, "bilinear", {}, {2, 1, 4, 4});
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == row[i % 4] * row[i / 4 % 4]);
}

TEST_CASE("values depend on seed, name and index alone") {
  const TShape shape = {5, 19, 13, 17};
  Runtime one(With(1, "naive"), nullptr), three(With(3), nullptr);
  const std::vector<float> values = Values(one, "normal", {}, shape);
  CHECK(Values(three, "normal", {}, shape) == values);
  for (size_t i : {0, 1, 2, 12345})
    CHECK(values[i] == 0.01f * NormalAt(1, StreamOf("fc1_weight"), 0, i));

  const Layout blocked = three.backend(Context::cpu()).Intern(BlockedLayout::FromName("ABcd8b8a"));
  NDArray array(three, shape, DType::kFloat32, Context::cpu(), blocked);
  Initializer::Create("normal")->Initialize("fc1_weight", 1, &array);
  CHECK(array.ToVector() == values);
  Initializer::Create("normal")->Initialize("fc2_weight", 1, &array);
  CHECK(array.ToVector() != values);
  CHECK(Values(three, "normal", {}, shape, 2) != values);
  NDArray half(three, shape, DType::kFloat16);
  Initializer::Create("normal")->Initialize("fc1_weight", 1, &half);
  CHECK(half.ToVector()[7] == static_cast<float>(float16(values[7])));
}

TEST_CASE("rules by name") {
  Runtime runtime(With(1), nullptr);
  const auto weights = Initializer::Create("constant", {{"value", "9"}});
  auto first = [&](const std::string& name, const std::string& attribute = "",
                   const TShape& shape = {6, 2}) {
    NDArray array(runtime, shape);
    array.Fill(-1);
    InitializeByName(name, attribute, *weights, 1, &array);
    return array.ToVector()[0];
  };
  for (const char* name : {"fc1_bias", "bn_beta", "bn_moving_mean", "bn_running_mean", "q_min",
                           "x_moving_inv_var", "x_moving_avg", "stn_loc_weight"}) {
    CAPTURE(name);
    CHECK(first(name) == 0);
  }
  for (const char* name : {"bn_gamma", "bn_moving_var", "bn_running_var", "q_max"}) {
    CAPTURE(name);
    CHECK(first(name) == 1);
  }
  CHECK(first("fc1_weight") == 9);
  CHECK(first("upsampling0_weight", "", {1, 1, 4, 4}) == 0.0625f);
  NDArray transform(runtime, {6});
  InitializeByName("stn_loc_bias", "", *weights, 1, &transform);
  CHECK(transform.ToVector() == std::vector<float>{1, 0, 0, 0, 1, 0});

  CHECK(first("fc1_weight", "one") == 1);
  CHECK(first("anchor", "[\"constant\", {\"value\": \"4\"}]") == 4);
  CHECK(first("anchor", "[\"Constant\", {\"value\": 4.5}]") == 4.5);
  CHECK(first("anchor", "[\"zero\"]") == 0);
  CHECK(first("anchor", "\"ones\"") == 1);
  CHECK_THROWS_WITH_AS(first("anchor"),
                       "no initializer for parameter 'anchor': its name ends in none of _weight, "
                       "_bias, _gamma, _beta, moving_mean, running_mean, "
                       "moving_var, running_var, moving_inv_var, moving_avg, _min, _max; declare "
                       "`init` on it, such as init: zero or init: [xavier, "
                       "{magnitude: 2}]",
                       Error);
  CHECK_THROWS_WITH_AS(first("a", "xavir"),
                       "parameter 'a': there is no initializer 'xavir'; did you mean 'xavier'?",
                       Error);
  CHECK_THROWS_WITH_AS(
      first("a", "[\"xavier\", {\"magnitud\": 2}]"),
      "parameter 'a': initializer xavier has no parameter 'magnitud'; did you mean 'magnitude'?",
      Error);
  for (const char* text : {"[", "[1]", "[\"zero\", 1]", "[\"zero\", {}, 2]", "[]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(first("a", text), Error);
  }
}

TEST_CASE("fused_rnn: biases of 0 and of forget gates behind the weights") {
  Runtime runtime(With(2), nullptr);
  // Two layers of 2 units with 3 inputs: 4 gates of W, R, then b_W and b_R.
  const int64_t weights = 4 * 2 * (3 + 2) + 4 * 2 * (2 + 2);
  const Kwargs lstm = {{"num_hidden", "2"}, {"num_layers", "2"}, {"mode", "lstm"}};
  std::vector<float> values = Values(runtime, "FusedRNN", lstm, {weights + 2 * 16});
  CHECK(Largest(values) == 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool forgets = i >= size_t{weights} && (i - size_t{weights}) % 8 / 2 == 1;
    CHECK((forgets ? values[i] == 1 : std::abs(values[i]) <= std::sqrt(0.5f)));
  }
  CHECK(Deviation({values.begin(), values.begin() + weights}) ==
        doctest::Approx(std::sqrt(0.5 / 3)).epsilon(0.15));
  Kwargs constant = lstm;
  constant.emplace_back("init", R"(["constant", {"value": "3"}])");
  constant.emplace_back("forget_bias", "-2");
  values = Values(runtime, "fused_rnn", constant, {weights + 2 * 16});
  for (size_t i = 0; i < values.size(); ++i) {
    const bool bias = i >= size_t{weights}, forgets = bias && (i - size_t{weights}) % 8 / 2 == 1;
    CHECK(values[i] == (forgets ? -2 : bias ? 0 : 3));
  }
  CHECK_THROWS_WITH_AS(Values(runtime, "fused_rnn", lstm, {32}),
                       "fused_rnn initializes the parameters of an RNN, more than 32 numbers; "
                       "'fc1_weight' has shape [32]",
                       Error);
}

TEST_CASE("errors name the parameter and the choices") {
  Runtime runtime(With(1), nullptr);
  CHECK_THROWS_WITH_AS(Values(runtime, "xavier", {}, {3}),
                       "xavier needs an array of two dimensions or more to know its fans; "
                       "'fc1_weight' has shape [3]; declare another init",
                       Error);
  CHECK_THROWS_WITH_AS(Initializer::Create("identity"),
                       "there is no initializer 'identity'; use zero, one, constant, uniform, "
                       "normal, xavier, msra_prelu, orthogonal, bilinear, fused_rnn",
                       Error);
  CHECK_THROWS_AS(Initializer::Create("constant"), Error);
  CHECK_THROWS_AS(Initializer::Create("zero", {{"value", "1"}}), Error);
  CHECK_THROWS_AS(Initializer::Create("uniform", {{"scale", "-1"}}), Error);
  NDArray whole(runtime, {2, 2}, DType::kInt32);
  CHECK_THROWS_AS(Initializer::Create("normal")->Initialize("fc1_weight", 1, &whole), Error);
  CHECK(Initializer::Describe("xavier").size() == 3);
}

}  // namespace
}  // namespace mxtrain
