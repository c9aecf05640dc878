// SPDX-License-Identifier: Apache-2.0
#pragma once
// A net that computes what Llama does, whatever its layers are called, as Hugging Face's
// transformers has it (LlamaForCausalLM; MistralForCausalLM with a sliding window): RMSNorm before
// each branch, queries and keys that are turned by their positions, heads that share keys, gated
// mlps, no biases.
#include <optional>
#include <string>
#include <vector>

#include "app/inference/published_arrays.h"
#include "mxtrain/base/expected.h"
#include "mxtrain/base/json.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

struct LlamaForm {
  std::vector<PublishedArray> arrays;  // usual names are those of configs/text/llama.yaml
  int64_t vocabulary = 0, length = 0, width = 0, layers = 0, hidden = 0;
  int64_t heads = 0, key_heads = 0, depth = 0;  // of attention
  int64_t sliding_window = 0;                   // 0: none
  double base = 0, epsilon = 0, dropout = 0;
  bool tied = true;

  const char* model_type() const { return sliding_window > 0 ? "mistral" : "llama"; }
  // What transformers reads as config.json.
  Json ConfigJson(std::optional<text::TokenId> end_of_text) const;
  // What the config.json of published weights has otherwise than this net: sentences, of a key
  // each. A key that transformers has a default for counts as that.
  std::vector<std::string> DifferencesFrom(const Json& config) const;
};

// A refusal names the first layer, from the output on, that Llama has otherwise. `input`: of the
// net; `length`: tokens of an example.
Expected<LlamaForm, Refusal> LlamaFormOf(const Symbol& net, const std::string& input,
                                         int64_t length);
Expected<LlamaForm, Refusal> LlamaFormOf(const Model& model);

}  // namespace mxtrain::inference
