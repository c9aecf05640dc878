// SPDX-License-Identifier: Apache-2.0
#include "app/inference/gpt2_form.h"

#include "app/inference/form_matcher.h"
#include "app/inference/published_config.h"

namespace mxtrain::inference {
namespace {

// Walks from the output to the input.
class Gpt2Matcher : private FormMatcher {
 public:
  Gpt2Matcher(const Symbol& net, const std::string& input, int64_t length)
      : FormMatcher(net, input, {1, length}) {}

  Gpt2Form Match() {
    const Node& output = Expect(Scores(), "FullyConnected", "the output");
    RequireDense(output, false);
    const std::string own_output = Weight(output, 1);
    NodeEntry top = Normalized(output.inputs[0], "ln_f", "head_ln");
    const auto blocks = BlocksBelow(&top, [&](const NodeEntry& end) { return SumOf(end); });
    form_.layers = std::ssize(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) Block(blocks[i].mlp, blocks[i].attention, i);
    Beginning(top, own_output);
    return std::move(form_);
  }

 private:
  void Add(const Node& node, size_t input, std::string theirs, std::string usual,
           bool transposed = false) {
    form_.arrays.push_back(
        {Weight(node, input), std::move(theirs), std::move(usual), transposed, {}});
  }

  // What a LayerNorm over the last axis reads.
  NodeEntry Normalized(NodeEntry entry, const std::string& theirs, const std::string& usual) {
    const Node& norm = Expect(entry, "LayerNorm", "the input of a product");
    int axis = 0;
    params::Parse(ParamOf(*norm.op, "axis"), &axis);
    if (axis != -1 && axis != 2) Require(norm, "axis", "-1");
    double epsilon = 0;
    params::Parse(ParamOf(*norm.op, "eps"), &epsilon);
    if (form_.epsilon != 0 && form_.epsilon != epsilon)
      throw Differs{DescribeNode(norm) + " has another eps than later ones"};
    form_.epsilon = epsilon;
    Add(norm, 1, "transformer." + theirs + ".weight", usual + "_gamma");
    Add(norm, 2, "transformer." + theirs + ".bias", usual + "_beta");
    return Skip(norm.inputs[0]);
  }

  // What a product with a bias reads.
  NodeEntry Dense(const Node& node, const std::string& theirs, const std::string& usual) {
    RequireDense(node, true);
    Add(node, 1, "transformer." + theirs + ".weight", usual + "_weight", true);
    Add(node, 2, "transformer." + theirs + ".bias", usual + "_bias");
    return node.inputs[0];
  }

  void Block(const NodeEntry& top, const NodeEntry& middle, size_t number) {
    const std::string theirs = format("h.{}.", number), usual = format("unit{}_", number);
    const auto norm = [&](NodeEntry from, const char* digit, const NodeEntry& wanted) {
      if (Normalized(from, theirs + "ln_" + digit, usual + "norm" + digit + "_ln") != Skip(wanted))
        throw Differs{
            format("{} does not normalize the input of its block", DescribeNode(At(from)))};
    };
    const Sum mlp = *SumOf(top), attention = *SumOf(middle);
    Skip(mlp.branch, &form_.dropout);
    const Node& narrow = Expect(mlp.branch, "FullyConnected", "the end of a block");
    const Node& gelu =
        Expect(Dense(narrow, theirs + "mlp.c_proj", usual + "mlp_b_fc"), "gelu", "the activation");
    const std::string kind = ParamOf(*gelu.op, "approximate");
    if (!form_.gelu.empty()) Require(gelu, "approximate", form_.gelu);
    form_.gelu = kind;
    const Node& wide = Expect(gelu.inputs[0], "FullyConnected", "the input of the activation");
    form_.hidden = Shape(gelu.inputs[0])[2];
    norm(Dense(wide, theirs + "mlp.c_fc", usual + "mlp_a_fc"), "2", mlp.shortcut);
    norm(Attention(attention.branch, theirs + "attn.", usual + "attention_"), "1",
         attention.shortcut);
  }

  // What query, key and value are made of.
  NodeEntry Attention(const NodeEntry& branch, const std::string& theirs,
                      const std::string& usual) {
    const Node& proj = Expect(branch, "FullyConnected", "the end of an attention");
    const NodeEntry joined = Dense(proj, theirs + "c_proj", usual + "proj_fc");
    const Node& heads = HeadsJoinedIn(joined, true, "none");
    params::Parse(ParamOf(*heads.op, "dropout_p"), &form_.attention_dropout);
    for (int i = 0; i < 3; ++i) {
      if (heads.inputs[static_cast<size_t>(i)] != NodeEntry{heads.inputs[0].node, i})
        throw Differs{DescribeNode(heads) + " does not read query, key and value of one product"};
    }
    const Node& parts = Expect(heads.inputs[0], "SliceChannel", "what an attention reads");
    Require(parts, "axis", "0");
    const Node& by_head = Expect(parts.inputs[0], "transpose", "what is split");
    Require(by_head, "axes", params::Print(TShape{2, 0, 3, 1, 4}));
    const Node& by_place = Expect(by_head.inputs[0], "Reshape", "what is transposed");
    const TShape &one = Shape(heads.inputs[0]), &all = Shape(by_place.inputs[0]);
    form_.heads = one[1];
    form_.width = one[1] * one[3];
    RequireShape(joined, {all[0], all[1], form_.width});
    RequireShape(by_head.inputs[0], {all[0], all[1], 3, one[1], one[3]});
    const Node& qkv = Expect(by_place.inputs[0], "FullyConnected", "what is split into heads");
    return Dense(qkv, theirs + "c_attn", usual + "qkv_fc");
  }

  void Beginning(const NodeEntry& entry, const std::string& own_output) {
    const Node& sum = At(Skip(entry, &form_.embedding_dropout));
    if (!Is(sum, "broadcast_add") && !Is(sum, "elemwise_add"))
      throw Differs{DescribeNode(sum) + " does not add positions to the tokens"};
    const bool first = Is(At(Skip(sum.inputs[0])), "Embedding");
    const Node& tokens =
        Expect(sum.inputs[first ? 0 : 1], "Embedding", "what positions are added to");
    const NodeEntry table = tokens.inputs[1];
    form_.vocabulary = Shape(table)[0];
    Add(tokens, 1, "transformer.wte.weight", "token_weight");
    form_.tied = Weight(tokens, 1) == own_output;
    if (!form_.tied)
      form_.arrays.push_back({own_output, "lm_head.weight", "scores_weight", false, {}});
    Positions(sum.inputs[first ? 1 : 0]);
  }

  // A matrix of positions, of which the first are used.
  void Positions(NodeEntry entry) {
    while (!At(entry).is_variable()) {
      const Node& node = At(entry);
      if (Is(node, "slice_axis")) {
        Require(node, "begin", "0");
      } else if (!Is(node, "expand_dims") && !Is(node, "Reshape")) {
        throw Differs{DescribeNode(node) + " is no array of positions"};
      }
      if (Shape(entry)[Shape(entry).ndim() - 1] != form_.width)
        throw Differs{DescribeNode(node) + " is no array of positions"};
      entry = node.inputs[0];
    }
    form_.positions = Shape(entry).Size() / form_.width;
    form_.arrays.push_back({At(entry).name,
                            "transformer.wpe.weight",
                            "position",
                            false,
                            {form_.positions, form_.width}});
  }

  Gpt2Form form_;
};

}  // namespace

Json Gpt2Form::ConfigJson(std::optional<text::TokenId> end_of_text) const {
  Json json = {{"architectures", {"GPT2LMHeadModel"}},
               {"model_type", "gpt2"},
               {"vocab_size", vocabulary},
               {"n_positions", positions},
               {"n_ctx", positions},
               {"n_embd", width},
               {"n_layer", layers},
               {"n_head", heads},
               {"n_inner", hidden},
               {"activation_function", gelu == "tanh" ? "gelu_new" : "gelu"},
               {"layer_norm_epsilon", epsilon},
               {"embd_pdrop", embedding_dropout},
               {"resid_pdrop", dropout},
               {"attn_pdrop", attention_dropout},
               {"tie_word_embeddings", tied},
               {"torch_dtype", "float32"}};
  for (const char* key : {"bos_token_id", "eos_token_id"})
    json[key] = end_of_text ? Json(*end_of_text) : Json();
  return json;
}

std::vector<std::string> Gpt2Form::DifferencesFrom(const Json& config) const {
  ConfigReader read(config);
  if (const std::string type = ConfigReader::TextIn(config, "model_type", ""); type != "gpt2") {
    read.Add(format("model_type is '{}', and only gpt2 is covered", type));
    return read.Take();
  }
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  read.Number("vocab_size", 50257, number(vocabulary), "classes");
  read.Number("n_positions", 1024, number(positions), "positions");
  const double their_width = ConfigReader::NumberIn(config, "n_embd", 768);
  read.Number("n_embd", 768, number(width), "width");
  read.Number("n_layer", 12, number(layers), "units");
  read.Number("n_head", 12, number(heads), "heads");
  read.Number("n_inner", 4 * their_width, number(hidden), "width");
  read.Number("layer_norm_epsilon", 1e-5, epsilon, "norm_eps");
  const std::string act = ConfigReader::TextIn(config, "activation_function", "gelu_new");
  const bool approximate = act == "gelu_new" || act == "gelu_pytorch_tanh" || act == "gelu_fast";
  if (approximate != (gelu == "tanh") || (!approximate && act != "gelu"))
    read.Add(format("activation_function is {}, and the net has gelu: {} (vars.gelu)", act, gelu));
  read.Truth("scale_attn_weights", true, true, "and scores are scaled by 1 / sqrt(depth) alone");
  read.Truth("scale_attn_by_inverse_layer_idx", false, false, "which is not covered");
  read.Absent("quantization_config");
  return read.Take();
}

Expected<Gpt2Form, Refusal> Gpt2FormOf(const Symbol& net, const std::string& input,
                                       int64_t length) {
  try {
    return Gpt2Matcher(net, input, length).Match();
  } catch (const Differs& differs) {
    return Refusal{differs.why};
  } catch (const Error& error) {  // shapes that do not follow from the input's
    return Refusal{error.what()};
  }
}

Expected<Gpt2Form, Refusal> Gpt2FormOf(const Model& model) {
  const std::vector<InputInfo>& inputs = model.info.inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1)
    return Refusal{"the net does not read a list of tokens"};
  return Gpt2FormOf(model.symbol, inputs[0].name, inputs[0].shape[0]);
}

}  // namespace mxtrain::inference
