// SPDX-License-Identifier: Apache-2.0
#include "app/inference/llama_form.h"

#include <algorithm>

#include "app/inference/form_matcher.h"
#include "app/inference/published_config.h"

namespace mxtrain::inference {
namespace {

class LlamaMatcher : private FormMatcher {
 public:
  LlamaMatcher(const Symbol& net, const std::string& input, int64_t length)
      : FormMatcher(net, input, {1, length}) {
    form_.length = length;
  }

  LlamaForm Match() {
    const Node& output = Expect(Scores(), "FullyConnected", "the output");
    RequireDense(output, false);
    const std::string own_output = Weight(output, 1);
    NodeEntry top = Normalized(output.inputs[0], "model.norm", "head_rms");
    const auto blocks = BlocksBelow(&top, [&](const NodeEntry& end) { return SumOf(end); });
    form_.layers = std::ssize(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) Block(blocks[i].mlp, blocks[i].attention, i);
    const Node& tokens = Expect(top, "Embedding", "what the first block reads");
    form_.vocabulary = Shape(tokens.inputs[1])[0];
    form_.width = Shape(tokens.inputs[1])[1];
    Add(tokens, "model.embed_tokens", "token");
    form_.tied = Weight(tokens, 1) == own_output;
    if (!form_.tied)
      form_.arrays.push_back({own_output, "lm_head.weight", "scores_weight", false, {}});
    form_.sliding_window = sliding_window_->value_or(0);
    form_.base = *base_;
    form_.epsilon = *epsilon_;
    form_.dropout = *dropout_;
    return std::move(form_);
  }

 private:
  void Add(const Node& node, const std::string& theirs, const std::string& usual) {
    form_.arrays.push_back({Weight(node, 1), theirs + ".weight", usual + "_weight", false, {}});
  }

  // What an RMSNorm reads.
  NodeEntry Normalized(NodeEntry entry, const std::string& theirs, const std::string& usual) {
    const Node& norm = Expect(entry, "RMSNorm", "the input of a product");
    Same(norm, "eps", &epsilon_);
    form_.arrays.push_back({Weight(norm, 1), theirs + ".weight", usual + "_gamma", false, {}});
    return Skip(norm.inputs[0]);
  }

  // What a product without a bias reads.
  NodeEntry Dense(NodeEntry entry, const char* what, const std::string& theirs,
                  const std::string& usual) {
    const Node& node = Expect(entry, "FullyConnected", what);
    RequireDense(node, false);
    Add(node, theirs, usual + "_fc");
    return node.inputs[0];
  }

  void Block(const NodeEntry& top, const NodeEntry& middle, size_t number) {
    const std::string theirs = format("model.layers.{}.", number),
                      usual = format("unit{}_", number);
    const auto norm = [&](NodeEntry from, const char* name, const char* own,
                          const NodeEntry& wanted) {
      if (Normalized(from, theirs + name, usual + own) != Skip(wanted))
        throw Differs{
            format("{} does not normalize the input of its block", DescribeNode(At(from)))};
    };
    const Sum mlp = *SumOf(top), attention = *SumOf(middle);
    norm(Attention(attention.branch, theirs + "self_attn.", usual + "attention_"),
         "input_layernorm", "norm1_rms", attention.shortcut);
    norm(Mlp(mlp.branch, theirs + "mlp.", usual + "mlp_"), "post_attention_layernorm", "norm2_rms",
         mlp.shortcut);
  }

  // What both products of the gate read.
  NodeEntry Mlp(const NodeEntry& branch, const std::string& theirs, const std::string& usual) {
    const NodeEntry product =
        Dense(branch, "the end of a block", theirs + "down_proj", usual + "down");
    const Node& gated = At(product);
    if (!Is(gated, "elemwise_mul") && !Is(gated, "broadcast_mul"))
      throw Differs{DescribeNode(gated) + " is no product with a gate"};
    const size_t gate = Is(At(gated.inputs[0]), "silu") ? 0 : 1;
    const Node& silu = Expect(gated.inputs[gate], "silu", "the gate");
    form_.hidden = Shape(product)[2];
    const NodeEntry read =
        Dense(silu.inputs[0], "what the gate reads", theirs + "gate_proj", usual + "gate");
    if (Dense(gated.inputs[1 - gate], "what is gated", theirs + "up_proj", usual + "up") != read)
      throw Differs{DescribeNode(gated) + " and its gate read different arrays"};
    return read;
  }

  // What query, key and value are made of.
  NodeEntry Attention(const NodeEntry& branch, const std::string& theirs,
                      const std::string& usual) {
    const NodeEntry joined =
        Dense(branch, "the end of an attention", theirs + "o_proj", usual + "o");
    const Node& heads = HeadsJoinedIn(joined, true, "none");
    Same(heads, "dropout_p", &dropout_);
    Same(heads, "sliding_window", &sliding_window_);
    const TShape &query = Shape(heads.inputs[0]), &key = Shape(heads.inputs[1]);
    form_.heads = query[1];
    form_.key_heads = key[1];
    form_.depth = query[3];
    RequireShape(joined, {1, form_.length, form_.heads * form_.depth});
    std::optional<NodeEntry> read;
    for (size_t i = 0; i < 3; ++i) {
      const char* const which = i == 0 ? "q" : i == 1 ? "k" : "v";
      NodeEntry entry = heads.inputs[i];
      if (i < 2) entry = Turned(entry);
      const NodeEntry from = Dense(SplitIntoHeads(entry, form_.length), "what is split into heads",
                                   theirs + which + "_proj", usual + which + "_all");
      if (read && *read != from)
        throw Differs{DescribeNode(heads) + " has query, key and value of different arrays"};
      read = from;
    }
    return *read;
  }
  // What a rotation reads.
  NodeEntry Turned(const NodeEntry& entry) {
    const Node& turn = Expect(entry, "rotary_embedding", "a query or a key");
    Require(turn, "interleaved", params::Print(false));
    Require(turn, "use_position", params::Print(false));
    const auto turned = Number<std::optional<int64_t>>(turn, "rotary_dim");
    if (turned && *turned != form_.depth) Require(turn, "rotary_dim", "None");
    Same(turn, "base", &base_);
    return turn.inputs[0];
  }

  LlamaForm form_;
  std::optional<double> base_, epsilon_, dropout_;
  std::optional<std::optional<int64_t>> sliding_window_;
};

}  // namespace

Json LlamaForm::ConfigJson(std::optional<text::TokenId> end_of_text) const {
  const bool slides = sliding_window > 0;
  Json json = {{"architectures", {slides ? "MistralForCausalLM" : "LlamaForCausalLM"}},
               {"model_type", model_type()},
               {"vocab_size", vocabulary},
               {"max_position_embeddings", length},
               {"hidden_size", width},
               {"intermediate_size", hidden},
               {"num_hidden_layers", layers},
               {"num_attention_heads", heads},
               {"num_key_value_heads", key_heads},
               {"head_dim", depth},
               {"hidden_act", "silu"},
               {"rms_norm_eps", epsilon},
               {"rope_theta", base},
               {"attention_dropout", dropout},
               {"tie_word_embeddings", tied},
               {"torch_dtype", "float32"}};
  if (slides) {
    json["sliding_window"] = sliding_window;
  } else {
    json["attention_bias"] = json["mlp_bias"] = false;
  }
  for (const char* key : {"bos_token_id", "eos_token_id"})
    json[key] = end_of_text ? Json(*end_of_text) : Json();
  return json;
}

std::vector<std::string> LlamaForm::DifferencesFrom(const Json& config) const {
  ConfigReader read(config);
  const std::string type = ConfigReader::TextIn(config, "model_type", "");
  if (type != "llama" && type != "mistral") {
    read.Add(
        format("model_type is '{}', and of nets with rotated queries and keys only llama and "
               "mistral are covered",
               type));
    return read.Take();
  }
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  read.Number("vocab_size", 32000, number(vocabulary), "classes");
  read.Number("hidden_size", 4096, number(width), "width");
  read.Number("num_hidden_layers", 32, number(layers), "units");
  read.Number("num_attention_heads", 32, number(heads), "heads");
  const double their_heads = ConfigReader::NumberIn(config, "num_attention_heads", 32);
  read.Number("num_key_value_heads", type == "mistral" ? 8 : their_heads, number(key_heads),
              "key_heads");
  read.Number("head_dim",
              ConfigReader::NumberIn(config, "hidden_size", 4096) / std::max(their_heads, 1.0),
              number(depth), "depth");
  read.Number("intermediate_size", type == "mistral" ? 14336 : 11008, number(hidden), "hidden");
  read.Number("rms_norm_eps", 1e-6, epsilon, "norm_eps");
  // Since version 5 of transformers the base stands with the scaling.
  const Json* rope = &config;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!read.Has(key)) continue;
    const Json& scaling = config[key];
    if (!scaling.is_object()) {
      read.Absent(key);
      continue;
    }
    const std::string kind = ConfigReader::TextIn(scaling, "rope_type",
                                                  ConfigReader::TextIn(scaling, "type", "default"));
    if (kind != "default")
      read.Add(
          format("{} is of the type '{}', and scalings of rotations are not covered", key, kind));
    if (scaling.contains("rope_theta")) rope = &scaling;
  }
  if (const double theta = ConfigReader::NumberIn(*rope, "rope_theta", 10000); theta != base)
    read.Add(format("rope_theta is {:.9g}, and the net has {:.9g} (vars.base)", theta, base));
  read.Truth("tie_word_embeddings", false, tied,
             tied ? "and the net has one weight for embedding and output (vars.tied)"
                  : "and the net has an output weight of its own (vars.tied)");
  read.Number("sliding_window", type == "mistral" && !config.contains("sliding_window") ? 4096 : 0,
              number(sliding_window), "sliding_window");
  read.Text("hidden_act", "silu");
  read.Truth("attention_bias", false, false, "and biases of attention are not covered");
  read.Truth("mlp_bias", false, false, "and biases of mlps are not covered");
  read.Truth("rope_interleaved", false, false, "and pairs of neighbours are not covered");
  read.Only("partial_rotary_factor", 1);
  read.Only("pretraining_tp", 1);
  read.Absent("quantization_config");
  return read.Take();
}

Expected<LlamaForm, Refusal> LlamaFormOf(const Symbol& net, const std::string& input,
                                         int64_t length) {
  try {
    return LlamaMatcher(net, input, length).Match();
  } catch (const Differs& differs) {
    return Refusal{differs.why};
  } catch (const Error& error) {  // shapes that do not follow from the input's
    return Refusal{error.what()};
  }
}

Expected<LlamaForm, Refusal> LlamaFormOf(const Model& model) {
  const std::vector<InputInfo>& inputs = model.info.inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1)
    return Refusal{"the net does not read a list of tokens"};
  return LlamaFormOf(model.symbol, inputs[0].name, inputs[0].shape[0]);
}

}  // namespace mxtrain::inference
