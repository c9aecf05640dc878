// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/block_losses.h"

#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/train/bind_request.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain {
namespace {

constexpr int64_t kBlockRows = 4, kBlockLength = 64, kBlockClasses = 5000, kBlockWidth = 6;
const std::map<std::string, TShape> kBlockShapes = {
    {"data", TShape{kBlockRows, kBlockLength}},
    {"softmax_label", TShape{kBlockRows, kBlockLength}}};
const std::vector<MetricSpec> kBlockMetrics = {{"perplexity", {}, "", ""}};

// A build without oneDNN has no kernel that takes blocks, and trains the net as it is.
bool HasBlocks() {
  return !test::TestRegistry().Kernels("linear_cross_entropy", DeviceType::kCPU).empty();
}

Symbol InBlocks(const Symbol& net, const ComputeModes& modes = {}, bool watched = false,
                const std::vector<MetricSpec>& metrics = kBlockMetrics) {
  return WithLossesInBlocks(test::TestRegistry(), net,
                            {.ctx = Context::cpu(),
                             .modes = modes,
                             .shapes = kBlockShapes,
                             .metrics = metrics,
                             .watched = watched});
}

Symbol BlockLayer(const char* op, const std::string& name, const Kwargs& kwargs,
                  const std::vector<Symbol>& inputs) {
  return Symbol::Create(test::TestRegistry(), op, name, kwargs, inputs);
}

// Tokens to scores of the next one; the weight is that of the embedding, as in GPT-2.
Symbol TiedNet(bool turned, const Kwargs& loss, const std::string& classes = "5000") {
  const Symbol weight = Symbol::Variable("token_weight");
  const Symbol x = BlockLayer("Embedding", "tokens", {{"input_dim", classes}, {"output_dim", "6"}},
                              {Symbol::Variable("data"), weight});
  const Symbol hidden =
      BlockLayer("FullyConnected", "hidden", {{"num_hidden", "6"}, {"flatten", "False"}}, {x});
  Symbol scores = BlockLayer("FullyConnected", "scores",
                             {{"num_hidden", classes}, {"flatten", "False"}, {"no_bias", "True"}},
                             {BlockLayer("tanh", "bent", {}, {hidden}), weight});
  Kwargs kwargs = {{turned ? "multi_output" : "preserve_shape", "True"}};
  kwargs.insert(kwargs.end(), loss.begin(), loss.end());
  if (turned) scores = BlockLayer("transpose", "by_token", {{"axes", "(0, 2, 1)"}}, {scores});
  return BlockLayer("SoftmaxOutput", "softmax", kwargs, {scores});
}

std::string LastOperator(const Symbol& net) {
  return net.graph().nodes.back().op->TypeString();
}

struct OneStep {
  double loss = 0;
  NamedValues scores;
  std::map<std::string, std::vector<float>> gradients;
  int64_t bytes = 0;
};

OneStep StepOf(const Symbol& net) {
  const auto runtime = test::NewRuntime();
  std::vector<DataDesc> arrays;
  for (const auto& [name, shape] : kBlockShapes) arrays.push_back({name, shape});
  const auto executor = Executor::SimpleBind(*runtime, net, TrainingRequest({}, net, arrays));
  for (const auto& [name, array] : executor->args())
    test::SetValues(array, test::ValuesFor(name, array.shape().Size()));
  std::vector<double> tokens, labels;
  for (int64_t i = 0; i < kBlockRows * kBlockLength; ++i) {
    tokens.push_back(static_cast<double>(i * 37 % kBlockClasses));
    labels.push_back(i % 9 == 4 ? -1 : static_cast<double>(i * i % kBlockClasses));
  }
  std::vector<NDArray> inputs;
  NDArray label;
  for (const std::string& name : executor->input_names()) {
    inputs.emplace_back(*runtime, kBlockShapes.at(name));
    test::SetValues(inputs.back(), name == "data" ? tokens : labels);
    if (name != "data") label = inputs.back();
  }
  executor->Step(inputs);
  EpochScores scores(net, kBlockMetrics, {arrays[1]});
  const NDArray& output = executor->outputs()[0];
  output.WaitToRead();
  scores.Add({output.data()}, {{"softmax_label", label.data()}}, kBlockRows);
  OneStep step;
  step.scores = scores.Values();
  step.loss = scores.loss().Total();
  step.bytes = executor->arena_bytes() + output.spec().Bytes();
  for (const auto& [name, array] : executor->grads()) step.gradients[name] = array.ToVector();
  return step;
}

}  // namespace

TEST_CASE("a loss in blocks has the loss, the metrics and the gradients of the softmax") {
  if (!HasBlocks()) return;
  for (const bool turned : {false, true}) {
    CAPTURE(turned);
    const Symbol net = TiedNet(turned, {{"use_ignore", "True"}, {"normalization", "valid"}});
    const Symbol in_blocks = InBlocks(net);
    REQUIRE(LastOperator(in_blocks) == "linear_cross_entropy");
    CHECK(in_blocks.ListOutputs() == net.ListOutputs());
    const OneStep wanted = StepOf(net), own = StepOf(in_blocks);
    CHECK(std::abs(own.loss - wanted.loss) < 1e-6 * wanted.loss);
    REQUIRE(own.scores.size() == 2);
    for (size_t i = 0; i < own.scores.size(); ++i) {
      CHECK(own.scores[i].first == wanted.scores[i].first);
      CHECK(own.scores[i].second == doctest::Approx(wanted.scores[i].second).epsilon(1e-5));
    }
    REQUIRE(own.gradients.size() == wanted.gradients.size());
    for (const auto& [name, values] : wanted.gradients) {
      CAPTURE(name);
      double largest = 0, difference = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        largest = std::max<double>(largest, std::abs(values[i]));
        difference = std::max<double>(difference, std::abs(values[i] - own.gradients.at(name)[i]));
      }
      CHECK(difference <= 1e-5 * largest);
    }
    CHECK(own.bytes < 2 * wanted.bytes / 3);
  }
}

TEST_CASE("heads that are not computed in blocks") {
  const Kwargs valid = {{"normalization", "valid"}};
  CHECK((LastOperator(InBlocks(TiedNet(false, valid))) == "linear_cross_entropy") == HasBlocks());
  CHECK((LastOperator(InBlocks(TiedNet(false, {}))) == "linear_cross_entropy") == HasBlocks());
  const auto unchanged = [](const Symbol& net) { return LastOperator(net) == "SoftmaxOutput"; };
  CHECK(unchanged(InBlocks(TiedNet(false, valid), {}, false, {{"accuracy", {}, "", ""}})));
  CHECK(unchanged(InBlocks(TiedNet(false, valid), {}, /*watched=*/true)));
  CHECK(unchanged(InBlocks(TiedNet(false, valid), {.amp = DType::kFloat16})));
  CHECK(unchanged(InBlocks(TiedNet(false, valid), {.fuse = false})));
  for (const Symbol& net :
       {TiedNet(false, valid, "200"),  // too small
        TiedNet(false, {{"smooth_alpha", "0.1"}}), TiedNet(false, {{"out_grad", "True"}}),
        TiedNet(false, {{"focal_gamma", "2"}}), TiedNet(true, {})})  // another divisor
    CHECK(unchanged(InBlocks(net)));
}

}  // namespace mxtrain
