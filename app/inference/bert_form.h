// SPDX-License-Identifier: Apache-2.0
#pragma once
// A net that computes what BERT with a classifier does, whatever its layers are called, as Hugging
// Face's transformers has it (BertForSequenceClassification): learnt positions, blocks that
// normalize last, keys of padding that are not seen, and a classifier of what the first token
// became.
#include <string>
#include <vector>

#include "app/inference/published_arrays.h"
#include "mxtrain/base/expected.h"
#include "mxtrain/base/json.h"
#include "mxtrain/symbol/symbol.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

struct BertForm {
  std::vector<PublishedArray> arrays;  // usual names are those of configs/text/bert_base.yaml
  int64_t vocabulary = 0, positions = 0, kinds = 0, width = 0, heads = 0, layers = 0, hidden = 0;
  int64_t classes = 0;
  double epsilon = 0, dropout = 0, attention_dropout = 0;
  std::string gelu;  // of the operator: none, tanh

  const char* activation() const { return gelu == "tanh" ? "gelu_new" : "gelu"; }
  // What transformers reads as config.json.
  Json ConfigJson(const std::vector<std::string>& class_names) const;
  // As of LlamaForm. What was trained with another head serves, too.
  std::vector<std::string> DifferencesFrom(const Json& config) const;
};

// A refusal names the first layer, from the output on, that BERT has otherwise. `input`: of the
// net; `length`: ids of an example.
Expected<BertForm, Refusal> BertFormOf(const Symbol& net, const std::string& input, int64_t length);
Expected<BertForm, Refusal> BertFormOf(const Model& model);

}  // namespace mxtrain::inference
