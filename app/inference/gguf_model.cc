// SPDX-License-Identifier: Apache-2.0
#include "app/inference/gguf_model.h"

#include <map>
#include <optional>
#include <regex>
#include <utility>
#include <vector>

#include "app/inference/gpt2_form.h"
#include "app/inference/llama_form.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::inference {
namespace {

// Names of Hugging Face become those of llama.cpp.
using GgufNames = std::vector<std::pair<std::regex, std::string>>;

const GgufNames& LlamaNames() {
  static const GgufNames names = {
      {std::regex("^model\\.embed_tokens\\."), "token_embd."},
      {std::regex("^lm_head\\."), "output."},
      {std::regex("^model\\.norm\\."), "output_norm."},
      {std::regex("^model\\.layers\\.(\\d+)\\."), "blk.$1."},
      {std::regex("\\.input_layernorm\\."), ".attn_norm."},
      {std::regex("\\.post_attention_layernorm\\."), ".ffn_norm."},
      {std::regex("\\.self_attn\\.([qkv])_proj\\."), ".attn_$1."},
      {std::regex("\\.self_attn\\.o_proj\\."), ".attn_output."},
      {std::regex("\\.mlp\\.(gate|up|down)_proj\\."), ".ffn_$1."},
  };
  return names;
}
const GgufNames& Gpt2Names() {
  static const GgufNames names = {
      {std::regex("^transformer\\.wte\\."), "token_embd."},
      {std::regex("^transformer\\.wpe\\."), "position_embd."},
      {std::regex("^lm_head\\."), "output."},
      {std::regex("^transformer\\.ln_f\\."), "output_norm."},
      {std::regex("^transformer\\.h\\.(\\d+)\\."), "blk.$1."},
      {std::regex("\\.ln_1\\."), ".attn_norm."},
      {std::regex("\\.ln_2\\."), ".ffn_norm."},
      {std::regex("\\.attn\\.c_attn\\."), ".attn_qkv."},
      {std::regex("\\.attn\\.c_proj\\."), ".attn_output."},
      {std::regex("\\.mlp\\.c_fc\\."), ".ffn_up."},
      {std::regex("\\.mlp\\.c_proj\\."), ".ffn_down."},
  };
  return names;
}
std::string Named(std::string name, const GgufNames& names) {
  for (const auto& [pattern, replacement] : names)
    name = std::regex_replace(name, pattern, replacement);
  return name;
}

uint32_t Count(int64_t n) {
  return static_cast<uint32_t>(n);
}

void AddArray(const std::string& name, const NDArray& array, DType type, GgufWriter* file) {
  const bool plain = array.shape().ndim() < 2 || name == "position_embd.weight";
  file->Add(name, array, plain ? DType::kFloat32 : type);
}

// The rows of a product for queries or keys, [heads depth, width], in the order in which llama.cpp
// turns neighbours: of each head rows i and i + depth / 2 become 2 i and 2 i + 1.
NDArray WithPairsAsNeighbours(const NDArray& matrix, int64_t heads) {
  const int64_t depth = matrix.shape()[0] / heads, width = matrix.shape()[1], half = depth / 2;
  const std::vector<float> from = matrix.ToVector();
  std::vector<float> to(from.size());
  for (int64_t row = 0; row < heads * depth; ++row) {
    const int64_t at = row % depth, target = row - at + at % half * 2 + at / half;
    std::copy_n(from.begin() + row * width, width, to.begin() + target * width);
  }
  return NDArray::FromVector(matrix.runtime(), matrix.shape(), to);
}

void AddLlama(const LlamaForm& form, const Model& model, DType type, GgufWriter* file) {
  file->Set("general.architecture", std::string("llama"));
  if (form.sliding_window > 0 && form.sliding_window < form.length) {
    Throw(ErrorKind::kUsage,
          "{}: its sliding_window is {}, and llama.cpp has no equivalent of it for nets built like "
          "Llama",
          model.file, form.sliding_window);
  }
  const auto set = [file](const char* key, GgufWriter::Fact value) {
    file->Set(std::string("llama.") + key, std::move(value));
  };
  set("vocab_size", Count(form.vocabulary));
  set("context_length", Count(form.length));
  set("embedding_length", Count(form.width));
  set("block_count", Count(form.layers));
  set("feed_forward_length", Count(form.hidden));
  set("attention.head_count", Count(form.heads));
  set("attention.head_count_kv", Count(form.key_heads));
  set("attention.key_length", Count(form.depth));
  set("attention.value_length", Count(form.depth));
  set("attention.layer_norm_rms_epsilon", static_cast<float>(form.epsilon));
  set("rope.dimension_count", Count(form.depth));
  set("rope.freq_base", static_cast<float>(form.base));
  for (const PublishedArray& array : form.arrays) {
    const std::string name = Named(array.theirs, LlamaNames());
    NDArray data = model.args.at(array.own);
    if (name.ends_with(".attn_q.weight")) data = WithPairsAsNeighbours(data, form.heads);
    if (name.ends_with(".attn_k.weight")) data = WithPairsAsNeighbours(data, form.key_heads);
    AddArray(name, data, type, file);
  }
}

void AddGpt2(const Gpt2Form& form, const Model& model, DType type, GgufWriter* file) {
  file->Set("general.architecture", std::string("gpt2"));
  if (form.gelu != "tanh") {
    Throw(ErrorKind::kUsage,
          "{}: its gelu is exact, and llama.cpp has the approximation by tanh alone", model.file);
  }
  const auto set = [file](const char* key, GgufWriter::Fact value) {
    file->Set(std::string("gpt2.") + key, std::move(value));
  };
  set("context_length", Count(form.positions));
  set("embedding_length", Count(form.width));
  set("block_count", Count(form.layers));
  set("feed_forward_length", Count(form.hidden));
  set("attention.head_count", Count(form.heads));
  set("attention.layer_norm_epsilon", static_cast<float>(form.epsilon));
  for (const PublishedArray& array : form.arrays) {
    NDArray data = model.args.at(array.own);  // [out, in], as it is there
    if (array.shape.has_rank()) data = data.ToPlain().Reshape(array.shape);
    const std::string name = Named(array.theirs, Gpt2Names());
    AddArray(name, data, type, file);
    // Older versions require an output, also where it is the embedding.
    if (form.tied && name == "token_embd.weight") AddArray("output.weight", data, type, file);
  }
}

bool IsByteLevel(const Json& part) {
  return part.is_object() && part.value("type", "") == "ByteLevel" &&
         !part.value("add_prefix_space", true) && part.value("use_regex", true);
}

// How llama.cpp calls the way in which a tokenizer splits text.
std::string SplitterOf(const Json& tokenizer) {
  const Json pre = tokenizer.value("pre_tokenizer", Json());
  if (IsByteLevel(pre)) return "gpt-2";
  if (pre.is_object() && pre.value("type", "") == "Sequence") {
    const Json parts = pre.value("pretokenizers", Json::array());
    const bool digits = parts.size() == 2 && parts[0].is_object() &&
                        parts[0].value("type", "") == "Digits" &&
                        parts[0].value("individual_digits", false);
    if (digits && IsByteLevel(parts[1])) return "smollm";
  }
  return "";
}

void AddTokenizer(const std::string& text, int64_t rows, const std::string& model_file,
                  GgufWriter* file) {
  const auto refuse = [&](const std::string& why) {
    Throw(ErrorKind::kUsage,
          "{}: {}; a GGUF file takes byte-level BPE that splits as GPT-2's or SmolLM's alone",
          model_file, why);
  };
  if (text.empty()) refuse("it has no tokenizer");
  const text::TokenizerPtr tokenizer = text::TokenizerFromText(text, model_file);
  const Json json = Json::parse(text);
  const Json model = json.value("model", Json::object());
  if (!json.contains("pre_tokenizer") || !model.is_object() || !model.contains("merges"))
    refuse(format("its tokenizer is {}", tokenizer->Describe()));
  if (!json.value("normalizer", Json()).is_null()) refuse("its tokenizer normalizes text");
  if (model.value("ignore_merges", false)) refuse("its tokenizer has ignore_merges");
  const std::string splitter = SplitterOf(json);
  if (splitter.empty())
    refuse(format("its tokenizer splits by {}", json.value("pre_tokenizer", Json()).dump()));

  constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;
  const int64_t size = tokenizer->vocabulary_size();
  if (size > rows)
    Throw(ErrorKind::kData, "{}: {} tokens, and {} rows of the embedding", model_file, size, rows);
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  for (int64_t id = 0; id < rows; ++id) {
    std::string token;
    try {
      if (id < size) token = tokenizer->TokenOf(static_cast<text::TokenId>(id));
    } catch (const Error&) {  // no token has this id
    }
    types.push_back(token.empty() ? kUnused : kNormal);
    tokens.push_back(token.empty() ? format("[PAD{}]", id) : token);
  }
  for (const Json& added : json.value("added_tokens", Json::array()))
    types.at(added.at("id").get<size_t>()) =
        added.value("special", false) ? kControl : kUserDefined;
  std::vector<std::string> merges;
  for (const Json& merge : model.at("merges")) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  }
  file->Set("tokenizer.ggml.model", std::string("gpt2"));
  file->Set("tokenizer.ggml.pre", splitter);
  file->Set("tokenizer.ggml.tokens", std::move(tokens));
  file->Set("tokenizer.ggml.token_type", std::move(types));
  file->Set("tokenizer.ggml.merges", std::move(merges));
  if (const auto end = io::SeparatorOf(*tokenizer)) {
    file->Set("tokenizer.ggml.bos_token_id", *end);
    file->Set("tokenizer.ggml.eos_token_id", *end);
  }
  file->Set("tokenizer.ggml.add_bos_token", false);
}

}  // namespace

GgufWriter GgufOf(const Model& model, const std::string& tokenizer, DType type) {
  GgufWriter file;
  int64_t rows = 0;
  const Expected<LlamaForm, Refusal> llama = LlamaFormOf(model);
  if (llama) {
    AddLlama(*llama, model, type, &file);
    rows = llama->vocabulary;
  } else {
    const Expected<Gpt2Form, Refusal> gpt2 = Gpt2FormOf(model);
    if (!gpt2) {
      Throw(ErrorKind::kUsage,
            "{}: a GGUF file is for nets built like Llama or GPT-2; like Llama it is not because "
            "{}; like GPT-2 it is not because {}",
            model.file, llama.error().reason, gpt2.error().reason);
    }
    AddGpt2(*gpt2, model, type, &file);
    rows = gpt2->vocabulary;
  }
  file.Set("general.file_type", Count(type == DType::kFloat32   ? 0
                                      : type == DType::kFloat16 ? 1
                                                                : 32));
  AddTokenizer(tokenizer, rows, model.file, &file);
  return file;
}

}  // namespace mxtrain::inference
