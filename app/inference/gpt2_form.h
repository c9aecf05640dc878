// SPDX-License-Identifier: Apache-2.0
#pragma once
// A net that computes what GPT-2 does, whatever its layers are called, as Hugging Face's
// transformers has it (GPT2LMHeadModel): learnt positions, blocks that normalize first, one product
// for query, key and value, and an output that usually shares the weight of the embedding.
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

struct Gpt2Form {
  std::vector<PublishedArray> arrays;  // usual names are those of configs/text/gpt2_124m.yaml
  int64_t vocabulary = 0, positions = 0, width = 0, heads = 0, layers = 0, hidden = 0;
  double epsilon = 0;
  std::string gelu;  // of the operator: none, tanh
  bool tied = true;
  double embedding_dropout = 0, dropout = 0, attention_dropout = 0;

  // What transformers reads as config.json.
  Json ConfigJson(std::optional<text::TokenId> end_of_text) const;
  // As of LlamaForm.
  std::vector<std::string> DifferencesFrom(const Json& config) const;
};

// A refusal names the first layer, from the output on, that GPT-2 has otherwise.
// `input`: of the net; `length`: tokens of an example.
Expected<Gpt2Form, Refusal> Gpt2FormOf(const Symbol& net, const std::string& input, int64_t length);
Expected<Gpt2Form, Refusal> Gpt2FormOf(const Model& model);

}  // namespace mxtrain::inference
