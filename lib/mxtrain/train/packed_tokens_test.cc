// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/packed_tokens.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/train/bind_request.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain {
namespace {

constexpr int64_t kPackedLength = 12, kPackedTokens = 11, kPackedWidth = 8;

Symbol PackedLayer(const char* op, const std::string& name, const Kwargs& kwargs,
                   const std::vector<Symbol>& inputs) {
  return Symbol::Create(test::TestRegistry(), op, name, kwargs, inputs);
}

// A transformer of one layer with learnt positions, or with rotated queries and keys.
Symbol PackedTransformer(bool rotated, const Kwargs& loss, bool is_causal = true) {
  const auto heads = [](const Symbol& x, const std::string& name) {
    const Symbol dense =
        PackedLayer("FullyConnected", name,
                    {{"num_hidden", std::to_string(kPackedWidth)}, {"flatten", "False"}}, {x});
    const Symbol split =
        PackedLayer("Reshape", name + "_split", {{"shape", "(0, 0, 2, 4)"}}, {dense});
    return PackedLayer("transpose", name + "_heads", {{"axes", "(0, 2, 1, 3)"}}, {split});
  };
  const Symbol weight = Symbol::Variable("token_weight", {{"__shape__", "(11, 8)"}});
  Symbol x = PackedLayer("Embedding", "tokens", {{"input_dim", "11"}, {"output_dim", "8"}},
                         {Symbol::Variable("data"), weight});
  if (!rotated) {
    const Symbol places = Symbol::Variable("place_weight", {{"__shape__", "(1, 12, 8)"}});
    x = PackedLayer("broadcast_add", "placed", {}, {x, places});
  }
  Symbol q = heads(x, "q"), k = heads(x, "k");
  if (rotated) {
    q = PackedLayer("rotary_embedding", "q_turned", {}, {q});
    k = PackedLayer("rotary_embedding", "k_turned", {}, {k});
  }
  const Symbol seen = PackedLayer("scaled_dot_product_attention", "attention",
                                  {{"is_causal", params::Print(is_causal)}}, {q, k, heads(x, "v")});
  const Symbol back = PackedLayer("transpose", "back", {{"axes", "(0, 2, 1, 3)"}}, {seen}),
               joined = PackedLayer("Reshape", "joined", {{"shape", "(0, 0, -3)"}}, {back}),
               sum = PackedLayer("elemwise_add", "sum", {}, {joined, x});
  const Symbol scores = PackedLayer(
      "FullyConnected", "scores",
      {{"num_hidden", std::to_string(kPackedTokens)}, {"flatten", "False"}, {"no_bias", "True"}},
      {sum, weight});
  Kwargs kwargs = {{"preserve_shape", "True"}, {"normalization", "valid"}};
  kwargs.insert(kwargs.end(), loss.begin(), loss.end());
  return PackedLayer("SoftmaxOutput", "softmax", kwargs, {scores});
}

const Kwargs kIgnoresPadding = {{"use_ignore", "True"}};

// Rows of documents, as a batch; each document is [first token, length].
struct PackedBatch {
  std::vector<std::vector<std::pair<int, int>>> rows;

  std::map<std::string, std::vector<double>> Arrays() const {
    std::map<std::string, std::vector<double>> arrays;
    for (const auto& row : rows) {
      int64_t at = 0;
      const auto put = [&](double token, double label, double position) {
        arrays["data"].push_back(token);
        arrays["softmax_label"].push_back(label);
        arrays[kTokenPosition].push_back(position);
        ++at;
      };
      for (const auto& [first, length] : row) {
        for (int i = 0; i < length; ++i) {
          const auto token = [&](int k) {
            return static_cast<double>((first * 3 + k * k + k) % kPackedTokens);
          };
          put(token(i), token(i + 1), i);
        }
      }
      while (at < kPackedLength) put(0, -1, -1);
    }
    return arrays;
  }
};

std::map<std::string, std::vector<float>> GradientsOn(const Symbol& net, const PackedBatch& batch) {
  const auto runtime = test::NewRuntime();
  const auto rows = static_cast<int64_t>(batch.rows.size());
  std::vector<DataDesc> arrays = {{"data", TShape{rows, kPackedLength}},
                                  {"softmax_label", TShape{rows, kPackedLength}},
                                  {kTokenPosition, TShape{rows, kPackedLength}}};
  const auto executor = Executor::SimpleBind(*runtime, net, TrainingRequest({}, net, arrays));
  const auto values = batch.Arrays();
  for (const auto& [name, array] : executor->args())
    test::SetValues(array, test::ValuesFor(name, array.shape().Size()));
  std::vector<NDArray> inputs;
  for (const std::string& name : executor->input_names()) {
    inputs.emplace_back(*runtime, TShape{rows, kPackedLength});
    test::SetValues(inputs.back(), values.at(name));
  }
  executor->Step(inputs);
  std::map<std::string, std::vector<float>> gradients;
  for (const auto& [name, array] : executor->grads()) gradients[name] = array.ToVector();
  return gradients;
}

}  // namespace

TEST_CASE("packed documents have the gradients of padded ones") {
  const PackedBatch padded = {{{{1, 3}}, {{2, 12}}, {{3, 5}}, {{4, 1}}, {{5, 7}}, {{6, 2}}}},
                    packed = {{{{5, 7}, {3, 5}}, {{2, 12}}, {{4, 1}, {1, 3}, {6, 2}}}};
  for (const bool rotated : {false, true}) {
    CAPTURE(rotated);
    const Symbol net = PackedTransformer(rotated, kIgnoresPadding);
    const Symbol on_rows = WithPackedTokens(test::TestRegistry(), net, "data", kPackedLength);
    CHECK(on_rows.ListOutputs() == net.ListOutputs());
    const auto wanted = GradientsOn(net, padded), own = GradientsOn(on_rows, packed),
               blind = GradientsOn(net, packed);
    REQUIRE(own.size() == wanted.size());
    double largest = 0, difference = 0, without = 0;
    for (const auto& [name, values] : wanted) {
      CAPTURE(name);
      for (size_t i = 0; i < values.size(); ++i) {
        CHECK(own.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-5));
        largest = std::max<double>(largest, std::abs(values[i]));
        difference = std::max<double>(difference, std::abs(own.at(name)[i] - values[i]));
        without = std::max<double>(without, std::abs(blind.at(name)[i] - values[i]));
      }
    }
    CHECK(difference < 1e-5 * largest);
    CHECK(without > 1e-3 * largest);  // that it matters
  }
}

TEST_CASE("nets that cannot be packed are refused by the layer's name") {
  const auto pack = [](const Symbol& net) {
    WithPackedTokens(test::TestRegistry(), net, "data", kPackedLength);
  };
  CHECK_THROWS_WITH(pack(PackedTransformer(false, {})), doctest::Contains("use_ignore: true"));
  CHECK_THROWS_WITH(pack(PackedTransformer(false, kIgnoresPadding, /*is_causal=*/false)),
                    doctest::Contains("it is not causal"));
}

}  // namespace mxtrain
