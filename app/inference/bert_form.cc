// SPDX-License-Identifier: Apache-2.0
#include "app/inference/bert_form.h"

#include "app/inference/form_matcher.h"
#include "app/inference/published_config.h"

namespace mxtrain::inference {
namespace {

class BertMatcher : private FormMatcher {
 public:
  BertMatcher(const Symbol& net, const std::string& input, int64_t length)
      : FormMatcher(net, input, {1, length}), length_(length) {}

  BertForm Match() {
    if (graph_.heads.size() != 1) throw Differs{"the net has several outputs"};
    const Node& softmax = Expect(graph_.heads[0], "SoftmaxOutput", "the output");
    form_.classes = Shape(softmax.inputs[0])[1];
    const NodeEntry pooled =
        Product(softmax.inputs[0], "what the softmax reads", "classifier", "scores");
    const Node& tanh = Expect(pooled, "Activation", "what the classifier reads");
    Require(tanh, "act_type", "tanh");
    const Node& first = Expect(Product(tanh.inputs[0], "the pooler", "bert.pooler.dense", "pooler"),
                               "slice_axis", "what the pooler reads");
    Require(first, "axis", "1");
    Require(first, "begin", "0");
    Require(first, "end", "1");

    NodeEntry top = first.inputs[0];
    const auto blocks = BlocksBelow(&top, [&](const NodeEntry& end) { return SumBelow(end); });
    form_.layers = std::ssize(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) Block(blocks[i].mlp, blocks[i].attention, i);
    Beginning(top);
    form_.epsilon = *epsilon_;
    form_.attention_dropout = *attention_dropout_;
    form_.gelu = *gelu_;
    return std::move(form_);
  }

 private:
  // Of a norm that reads a sum with a product.
  std::optional<Sum> SumBelow(const NodeEntry& entry) const {
    const Node& norm = At(Skip(entry));
    return Is(norm, "LayerNorm") ? SumOf(norm.inputs[0]) : std::nullopt;
  }

  void Add(const Node& node, size_t input, std::string theirs, std::string usual) {
    form_.arrays.push_back({Weight(node, input), std::move(theirs), std::move(usual), false, {}});
  }
  void Norm(const NodeEntry& entry, const std::string& theirs, const std::string& usual) {
    const Node& norm = Expect(entry, "LayerNorm", "the end of a block");
    const int axis = Number<int>(norm, "axis");
    if (axis != -1 && axis != 2) Require(norm, "axis", "-1");
    Same(norm, "eps", &epsilon_);
    Add(norm, 1, theirs + ".weight", usual + "_gamma");
    Add(norm, 2, theirs + ".bias", usual + "_beta");
  }
  // What a product with a bias reads.
  NodeEntry Product(const NodeEntry& entry, const char* what, const std::string& theirs,
                    const std::string& usual) {
    const Node& node = Expect(entry, "FullyConnected", what);
    Require(node, "no_bias", params::Print(false));
    Add(node, 1, theirs + ".weight", usual + "_weight");
    Add(node, 2, theirs + ".bias", usual + "_bias");
    return Skip(node.inputs[0]);
  }
  NodeEntry Dense(const NodeEntry& entry, const char* what, const std::string& theirs,
                  const std::string& usual) {
    Require(Expect(entry, "FullyConnected", what), "flatten", params::Print(false));
    return Product(entry, what, theirs, usual);
  }

  void Block(const NodeEntry& top, const NodeEntry& middle, size_t number) {
    const std::string theirs = format("bert.encoder.layer.{}.", number),
                      usual = format("unit{}_", number);
    const Sum mlp = *SumBelow(top), attention = *SumBelow(middle);
    Norm(top, theirs + "output.LayerNorm", usual + "norm2_ln");
    Skip(mlp.branch, &form_.dropout);
    const NodeEntry bent =
        Dense(mlp.branch, "the end of an mlp", theirs + "output.dense", usual + "mlp_b_fc");
    const Node& gelu = Expect(bent, "gelu", "the activation");
    const std::string kind = ParamOf(*gelu.op, "approximate");
    if (gelu_ && *gelu_ != kind) Require(gelu, "approximate", *gelu_);
    gelu_ = kind;
    form_.hidden = Shape(gelu.inputs[0])[2];
    if (Dense(gelu.inputs[0], "the input of the activation", theirs + "intermediate.dense",
              usual + "mlp_a_fc") != Skip(mlp.shortcut))
      throw Differs{DescribeNode(gelu) + " does not belong to an mlp of its block's input"};
    Norm(middle, theirs + "attention.output.LayerNorm", usual + "norm1_ln");
    Attention(attention, theirs + "attention.", usual + "attention_");
  }

  void Attention(const Sum& sum, const std::string& theirs, const std::string& usual) {
    const Node& heads = HeadsJoinedIn(
        Dense(sum.branch, "the end of an attention", theirs + "output.dense", usual + "proj_fc"),
        false, "boolean");
    Same(heads, "dropout_p", &attention_dropout_);
    const TShape& query = Shape(heads.inputs[0]);
    form_.heads = query[1];
    form_.width = query[1] * query[3];
    const char* const names[] = {"query", "key", "value"};
    for (size_t i = 0; i < 3; ++i) {
      if (Shape(heads.inputs[i]) != query)
        throw Differs{DescribeNode(heads) + " has heads that share keys"};
      const std::string own = usual + names[i][0] + "_all_fc";
      if (Dense(SplitIntoHeads(heads.inputs[i], length_), "what is split into heads",
                theirs + "self." + names[i], own) != Skip(sum.shortcut))
        throw Differs{DescribeNode(heads) + " does not read the input of its block"};
    }
    Mask(heads.inputs[3], heads);
  }
  // Where the ids are not those of padding.
  void Mask(NodeEntry entry, const Node& heads) const {
    while (Is(At(entry), "Reshape") || Is(At(entry), "expand_dims")) entry = At(entry).inputs[0];
    const Node& seen = At(entry);
    if (!Is(seen, "_not_equal_scalar") || !At(seen.inputs[0]).is_variable())
      throw Differs{format("the mask of {} is not of the ids of padding", DescribeNode(heads))};
  }

  // Words, positions and the first kind of tokens, in any order of the sums.
  void Beginning(const NodeEntry& entry) {
    const NodeEntry norm = Skip(entry);
    Norm(norm, "bert.embeddings.LayerNorm", "embedded_ln");
    std::vector<NodeEntry> parts = {At(norm).inputs[0]}, tables;
    std::optional<NodeEntry> words;
    while (!parts.empty()) {
      const NodeEntry part = parts.back();
      parts.pop_back();
      const Node& node = At(part);
      if (Is(node, "broadcast_add") || Is(node, "elemwise_add")) {
        parts.insert(parts.end(), node.inputs.begin(), node.inputs.end());
      } else if (Is(node, "Embedding")) {
        words = part;
      } else if (Is(node, "expand_dims") || Is(node, "Reshape") || Is(node, "slice_axis")) {
        if (Is(node, "slice_axis")) Require(node, "begin", "0");
        if (At(node.inputs[0]).is_variable()) {
          tables.push_back(node.inputs[0]);
          rows_.push_back(Shape(part).Size() / form_.width);
        } else {
          parts.push_back(node.inputs[0]);
        }
      } else {
        throw Differs{DescribeNode(node) + " is no part of an embedding"};
      }
    }
    if (!words || tables.size() != 2)
      throw Differs{"the first block does not read the sum of words, positions and kinds"};
    form_.vocabulary = Shape(At(*words).inputs[1])[0];
    Add(At(*words), 1, "bert.embeddings.word_embeddings.weight", "tokens_weight");
    const size_t place = rows_[0] == length_ ? 0 : 1;
    if (rows_[place] != length_ || rows_[1 - place] != 1)
      throw Differs{"the first block does not read positions and one kind"};
    Table(tables[place], "position", &form_.positions);
    Table(tables[1 - place], "kind", &form_.kinds);
  }
  void Table(const NodeEntry& table, const char* usual, int64_t* rows) {
    const std::string theirs = usual == std::string("kind") ? "token_type" : "position";
    *rows = Shape(table).Size() / form_.width;
    form_.arrays.push_back({At(table).name,
                            "bert.embeddings." + theirs + "_embeddings.weight",
                            usual,
                            false,
                            {*rows, form_.width}});
  }

  const int64_t length_;
  BertForm form_;
  std::optional<double> epsilon_, attention_dropout_;
  std::optional<std::string> gelu_;
  std::vector<int64_t> rows_;
};

}  // namespace

Json BertForm::ConfigJson(const std::vector<std::string>& class_names) const {
  Json names = Json::object(), numbers = Json::object();
  for (int64_t i = 0; i < classes; ++i) {
    const std::string name =
        i < std::ssize(class_names) ? class_names[static_cast<size_t>(i)] : format("LABEL_{}", i);
    names[std::to_string(i)] = name;
    numbers[name] = i;
  }
  return {{"architectures", {"BertForSequenceClassification"}},
          {"model_type", "bert"},
          {"vocab_size", vocabulary},
          {"max_position_embeddings", positions},
          {"type_vocab_size", kinds},
          {"hidden_size", width},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"intermediate_size", hidden},
          {"hidden_act", activation()},
          {"layer_norm_eps", epsilon},
          {"hidden_dropout_prob", dropout},
          {"attention_probs_dropout_prob", attention_dropout},
          {"position_embedding_type", "absolute"},
          {"id2label", names},
          {"label2id", numbers},
          {"torch_dtype", "float32"}};
}

std::vector<std::string> BertForm::DifferencesFrom(const Json& config) const {
  ConfigReader read(config);
  if (const std::string type = ConfigReader::TextIn(config, "model_type", ""); type != "bert") {
    read.Add(format("model_type is '{}', and only bert is covered", type));
    return read.Take();
  }
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  read.Number("vocab_size", 30522, number(vocabulary), "tokens");
  read.Number("max_position_embeddings", 512, number(positions), "positions");
  read.Number("type_vocab_size", 2, number(kinds), "kinds");
  read.Number("hidden_size", 768, number(width), "width");
  read.Number("num_hidden_layers", 12, number(layers), "units");
  read.Number("num_attention_heads", 12, number(heads), "heads");
  read.Number("intermediate_size", 3072, number(hidden), "hidden");
  read.Number("layer_norm_eps", 1e-12, epsilon, "norm_eps");
  const std::string act = ConfigReader::TextIn(config, "hidden_act", "gelu");
  if (act != activation())
    read.Add(format("hidden_act is {}, and the net has {} (vars.gelu)", act, activation()));
  read.Text("position_embedding_type", "absolute");
  read.Truth("is_decoder", false, false, "and only encoders are covered");
  read.Absent("quantization_config");
  return read.Take();
}

Expected<BertForm, Refusal> BertFormOf(const Symbol& net, const std::string& input,
                                       int64_t length) {
  try {
    return BertMatcher(net, input, length).Match();
  } catch (const Differs& differs) {
    return Refusal{differs.why};
  } catch (const Error& error) {  // shapes that do not follow from the input's
    return Refusal{error.what()};
  }
}

Expected<BertForm, Refusal> BertFormOf(const Model& model) {
  const std::vector<InputInfo>& inputs = model.info.inputs;
  if (inputs.size() != 1 || !inputs[0].shape.known() || inputs[0].shape.ndim() != 1)
    return Refusal{"the net does not read a list of ids"};
  return BertFormOf(model.symbol, inputs[0].name, inputs[0].shape[0]);
}

}  // namespace mxtrain::inference
