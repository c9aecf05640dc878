// SPDX-License-Identifier: Apache-2.0
// Nets token by token against the same nets over whole windows, and nets that are refused.
#include "mxtrain/train/token_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "mxtrain/executor/executor.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kStepBatch = 2, kStepWindow = 9, kStepTokens = 13, kStepWidth = 8, kStepHeads = 2;

Symbol Built(const std::string& op, const std::string& name, const Kwargs& kwargs,
             const std::vector<Symbol>& inputs) {
  return Symbol::Create(TestRegistry(), op, name, kwargs, inputs);
}

Symbol ShapedVariable(const std::string& name, const TShape& shape) {
  return Symbol::Variable(name, {{"__shape__", params::Print(shape)}});
}

Symbol DenseOfTokens(const Symbol& x, const std::string& name, int64_t width) {
  return Built("FullyConnected", name, {{"num_hidden", params::Print(width)}, {"flatten", "False"}},
               {x});
}

Symbol AttentionOf(const Symbol& x, const std::string& name, const Kwargs& kwargs) {
  const Symbol split =
      Built("Reshape", name + "_split",
            {{"shape", params::Print(TShape{0, 0, 3, kStepHeads, kStepWidth / kStepHeads})}},
            {DenseOfTokens(x, name + "_qkv", 3 * kStepWidth)});
  const Symbol parts =
      Built("SliceChannel", name + "_parts",
            {{"num_outputs", "3"}, {"axis", "0"}, {"squeeze_axis", "True"}},
            {Built("transpose", name + "_heads", {{"axes", "(2, 0, 3, 1, 4)"}}, {split})});
  const Symbol attention =
      Built("scaled_dot_product_attention", name, kwargs, {parts[0], parts[1], parts[2]});
  const Symbol places =
      Built("transpose", name + "_places", {{"axes", "(0, 2, 1, 3)"}}, {attention});
  return Built("Reshape", name + "_joined", {{"shape", "(0, 0, -3)"}}, {places});
}

Symbol PlacedTokens() {
  const Symbol tokens =
      Built("Embedding", "tokens",
            {{"input_dim", params::Print(kStepTokens)}, {"output_dim", params::Print(kStepWidth)}},
            {Symbol::Variable("data")});
  const Symbol position = ShapedVariable("position", {kStepWindow + 3, kStepWidth});
  const Symbol places =
      Built("slice_axis", "places",
            {{"axis", "0"}, {"begin", "0"}, {"end", params::Print(kStepWindow)}}, {position});
  return Built("broadcast_add", "placed", {},
               {tokens, Built("expand_dims", "place", {{"axis", "0"}}, {places})});
}

// Attention twice, with what a transformer has around it.
Symbol CausalNet(bool tokens_last) {
  Symbol x = PlacedTokens();
  for (const std::string name : {"first", "second"}) {
    const Symbol norm = Built("LayerNorm", name + "_norm", {}, {x});
    x = Built("elemwise_add", name + "_sum", {},
              {x, AttentionOf(norm, name, {{"is_causal", "True"}})});
    const Symbol wide = Built("gelu", name + "_gelu", {}, {DenseOfTokens(x, name + "_wide", 12)});
    x = Built(
        "elemwise_add", name + "_out", {},
        {DenseOfTokens(Built("Dropout", name + "_drop", {}, {wide}), name + "_narrow", kStepWidth),
         x});
  }
  const Symbol scores = DenseOfTokens(x, "scores", kStepTokens);
  if (tokens_last) return Built("SoftmaxOutput", "softmax", {{"preserve_shape", "True"}}, {scores});
  return Built("SoftmaxOutput", "softmax", {{"multi_output", "True"}},
               {Built("transpose", "by_token", {{"axes", "(0, 2, 1)"}}, {scores})});
}

// As Llama has it: positions are in the rotation of queries and keys, and heads share keys.
Symbol RotaryNet(const std::string& sliding_window) {
  constexpr int64_t kQueryHeads = 4, kKeyHeads = 2, kDepth = 2;
  Symbol x =
      Built("Embedding", "tokens",
            {{"input_dim", params::Print(kStepTokens)}, {"output_dim", params::Print(kStepWidth)}},
            {Symbol::Variable("data")});
  for (const std::string layer : {"first", "second"}) {
    const Symbol norm = Built("RMSNorm", layer + "_norm", {}, {x});
    const auto by_head = [&](const char* what, int64_t heads) {
      const std::string name = layer + what;
      const Symbol split =
          Built("Reshape", name + "_split", {{"shape", params::Print(TShape{0, 0, heads, kDepth})}},
                {DenseOfTokens(norm, name, heads * kDepth)});
      return Built("transpose", name + "_heads", {{"axes", "(0, 2, 1, 3)"}}, {split});
    };
    const auto turned = [&](const char* what, int64_t heads) {
      return Built("rotary_embedding", layer + what + "_turned", {{"base", "100"}},
                   {by_head(what, heads)});
    };
    const Symbol attention =
        Built("scaled_dot_product_attention", layer + "_attention",
              {{"is_causal", "True"}, {"sliding_window", sliding_window}},
              {turned("_q", kQueryHeads), turned("_k", kKeyHeads), by_head("_v", kKeyHeads)});
    const Symbol joined =
        Built("Reshape", layer + "_joined", {{"shape", "(0, 0, -3)"}},
              {Built("transpose", layer + "_places", {{"axes", "(0, 2, 1, 3)"}}, {attention})});
    x = Built("elemwise_add", layer + "_sum", {},
              {DenseOfTokens(joined, layer + "_o", kStepWidth), x});
    const Symbol open = Built("silu", layer + "_open", {}, {DenseOfTokens(x, layer + "_gate", 12)});
    const Symbol gated =
        Built("elemwise_mul", layer + "_gated", {}, {open, DenseOfTokens(x, layer + "_up", 12)});
    x = Built("elemwise_add", layer + "_out", {},
              {DenseOfTokens(gated, layer + "_down", kStepWidth), x});
  }
  return Built("SoftmaxOutput", "softmax", {{"preserve_shape", "True"}},
               {DenseOfTokens(x, "scores", kStepTokens)});
}

Executor::BindRequest StepRequest(const std::map<std::string, TShape>& inputs) {
  Executor::BindRequest request;
  request.is_train = false;
  request.shapes = inputs;
  for (const auto& [name, shape] : inputs) request.inputs.insert(name);
  return request;
}

std::string WhyNoSteps(const Symbol& net) {
  const auto steps = TokenSteps::Of(TestRegistry(), net, "data", kStepWindow);
  return steps ? "" : steps.error().reason;
}

class Stepping {
 public:
  Stepping(const Symbol& net, bool tokens_last) : runtime_(NewRuntime()) {
    const auto steps = TokenSteps::Of(TestRegistry(), net, "data", kStepWindow);
    REQUIRE(steps);
    CHECK(steps->tokens_axis() == (tokens_last ? 1 : 2));
    whole_ =
        Executor::SimpleBind(*runtime_, net, StepRequest({{"data", {kStepBatch, kStepWindow}}}));
    one_ = Bind(steps->Net(kStepBatch, 1), 1, steps->position(), nullptr);
    fill_ = Bind(steps->Filling(kStepBatch, 4), 4, steps->position(), one_.get());
    uint64_t seed = 0;
    for (const auto& [name, array] : whole_->args()) {
      if (name.find("label") != std::string::npos) continue;
      const Values drawn = Uniform(-0.7, 0.7)(array.shape().Size(), ++seed);
      const NDArray values = NDArray::FromVector(*runtime_, array.shape(),
                                                 std::vector<float>(drawn.begin(), drawn.end()));
      NDArray(array).CopyFrom(values);
      NDArray(one_->arg(name)).CopyFrom(values);
    }
    for (int64_t i = 0; i < kStepBatch * kStepWindow; ++i)
      ids_.push_back(static_cast<float>((i * i + 3 * i) % kStepTokens));
  }

  // Probabilities [kStepBatch, kStepTokens] after token `place`, of the whole window and of one
  // step.
  void CheckAt(int64_t place, bool tokens_last) {
    const std::vector<NDArray> in = {
        NDArray::FromVector(*runtime_, {kStepBatch, kStepWindow}, ids_)};
    whole_->Forward(in);
    const std::vector<float> all = whole_->outputs()[0].ToVector();
    const std::vector<float> given = Run(*one_, place, 1);
    for (int64_t row = 0; row < kStepBatch; ++row) {
      for (int64_t token = 0; token < kStepTokens; ++token) {
        const int64_t at = tokens_last ? (row * kStepWindow + place) * kStepTokens + token
                                       : (row * kStepTokens + token) * kStepWindow + place;
        CHECK(std::abs(given[static_cast<size_t>(row * kStepTokens + token)] -
                       all[static_cast<size_t>(at)]) < 1e-6);
      }
    }
  }
  void Fill() { Run(*fill_, 0, 4); }

 private:
  std::unique_ptr<Executor> Bind(const Symbol& net, int64_t tokens, const std::string& position,
                                 Executor* shared) {
    return Executor::SimpleBind(
        *runtime_, net, StepRequest({{"data", {kStepBatch, tokens}}, {position, {kStepBatch}}}),
        shared);
  }
  std::vector<float> Run(Executor& executor, int64_t place, int64_t tokens) {
    std::vector<float> ids;
    for (int64_t row = 0; row < kStepBatch; ++row)
      ids.insert(ids.end(), ids_.begin() + row * kStepWindow + place,
                 ids_.begin() + row * kStepWindow + place + tokens);
    std::vector<NDArray> in;
    for (const std::string& name : executor.input_names()) {
      in.push_back(name == "data" ? NDArray::FromVector(*runtime_, {kStepBatch, tokens}, ids)
                                  : NDArray::FromVector(
                                        *runtime_, {kStepBatch},
                                        std::vector<float>(kStepBatch, static_cast<float>(place))));
    }
    executor.Forward(in);
    return executor.outputs()[0].ToVector();
  }

  const std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Executor> whole_, one_, fill_;
  std::vector<float> ids_;
};

TEST_CASE("token steps give what the whole window gives") {
  for (const bool tokens_last : {false, true}) {
    Stepping steps(CausalNet(tokens_last), tokens_last);
    for (int64_t place = 0; place < kStepWindow; ++place) steps.CheckAt(place, tokens_last);
    steps.Fill();
    for (const int64_t place : {4, 5, 2, 3}) steps.CheckAt(place, tokens_last);
  }
}

TEST_CASE("token steps with rotated queries and keys that heads share") {
  for (const char* sliding_window : {"None", "3"}) {
    Stepping steps(RotaryNet(sliding_window), true);
    for (int64_t place = 0; place < kStepWindow; ++place) steps.CheckAt(place, true);
    steps.Fill();
    for (const int64_t place : {4, 5, 2, 3}) steps.CheckAt(place, true);
  }
}

TEST_CASE("token steps refuse, by name, what may mix tokens") {
  const auto after = [](const std::string& op, const Kwargs& kwargs) {
    return DenseOfTokens(Built(op, "layer", kwargs, {PlacedTokens()}), "scores", kStepTokens);
  };
  CHECK(WhyNoSteps(
            DenseOfTokens(AttentionOf(PlacedTokens(), "attention", {}), "scores", kStepTokens)) ==
        "scaled_dot_product_attention 'attention': it is not causal: tokens see later ones");
  CHECK(WhyNoSteps(after("LayerNorm", {{"axis", "1"}})) ==
        "LayerNorm 'layer': it works along the axis of the tokens");
  CHECK(WhyNoSteps(after("softmax", {{"axis", "0"}})) ==
        "softmax 'layer': it works along the axis of the batch");
  CHECK(WhyNoSteps(after("BatchNorm", {{"axis", "2"}})) ==
        "BatchNorm 'layer': it is not known to keep tokens apart");
  CHECK(WhyNoSteps(after("cumsum", {{"axis", "1"}})) ==
        "cumsum 'layer': it is not known to keep tokens apart");
  CHECK(WhyNoSteps(after("Pooling", {{"kernel", "(3,)"}, {"pool_type", "max"}})) ==
        "Pooling 'layer': it is not known to keep tokens apart");
  CHECK(WhyNoSteps(after("Convolution", {{"kernel", "(1,)"}, {"num_filter", "9"}})) ==
        "Convolution 'layer': it is not known to keep tokens apart");
  CHECK(WhyNoSteps(after("Reshape", {{"shape", "(0, -1, 4)"}})) ==
        "Reshape 'layer': it makes another axis of the tokens, or of the batch");
  CHECK(WhyNoSteps(after("Reshape", {{"shape", "(-3, 0)"}})) ==
        "Reshape 'layer': it makes another axis of the tokens, or of the batch");
  CHECK(WhyNoSteps(after("slice_axis", {{"axis", "1"}, {"begin", "0"}, {"end", "4"}})) ==
        "slice_axis 'layer': it works along the axis of the tokens");
  CHECK(WhyNoSteps(after("Dropout", {{"mode", "always"}})) == "Dropout 'layer': it drops elements");
  const Symbol flat = Built("FullyConnected", "flat", {{"num_hidden", "5"}}, {PlacedTokens()});
  CHECK(WhyNoSteps(flat) == "FullyConnected 'flat': flatten makes one row of all tokens");
  const Symbol x = PlacedTokens();
  const Symbol turned = Built("SwapAxis", "turned", {{"dim1", "0"}, {"dim2", "1"}}, {x});
  CHECK(WhyNoSteps(Built("scaled_dot_product_attention", "heads", {{"is_causal", "True"}},
                         {turned, turned, turned})) ==
        "scaled_dot_product_attention 'heads': its tokens are not those of the net, [batch, ..., "
        "tokens, depth]");
  CHECK(
      WhyNoSteps(Built("rotary_embedding", "turn", {}, {turned})) ==
      "rotary_embedding 'turn': its tokens are not those of the net, [batch, ..., tokens, depth]");
  CHECK(WhyNoSteps(Built("rotary_embedding", "turn", {{"use_position", "True"}},
                         {x, Symbol::Variable("place_of_row")})) ==
        "rotary_embedding 'turn': it is given positions");
  const Symbol mask = ShapedVariable("mask", {kStepWindow, kStepWindow});
  CHECK(WhyNoSteps(Built("scaled_dot_product_attention", "heads",
                         {{"is_causal", "True"}, {"mask", "additive"}}, {x, x, x, mask})) ==
        "scaled_dot_product_attention 'heads': it has a mask");
  CHECK(WhyNoSteps(Built("elemwise_add", "sum", {}, {x, Symbol::Variable("all")})) ==
        "elemwise_add 'sum': a parameter of it has a value for each example");
}

}  // namespace
}  // namespace mxtrain::test
