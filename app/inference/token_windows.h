// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model run on windows of tokens, for the token that follows each. Two ways of one
// meaning: the whole window each time, for any net that is causal, and only the tokens that were
// not there before, with the keys and values of earlier ones kept (mxtrain/train/token_steps.h).
#include <memory>
#include <span>
#include <string>

#include "app/tasks/language_model/token_scores.h"
#include "mxtrain/base/expected.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::inference {

// Used on one thread.
class TokenWindows {
 public:
  virtual ~TokenWindows() = default;
  // windows[r]: the tokens of row r, at most as many as the net reads; of an empty one nothing is
  // said. probabilities [rows, tokens]: of the next token.
  virtual void Run(std::span<const std::span<const text::TokenId>> windows,
                   std::span<float> probabilities) = 0;
};

// What both are made from. The runtime and the model outlive them.
struct WindowRequest {
  Runtime& runtime;
  const Model& model;  // without labels, with one output, of that layout
  std::string input;
  tasks::TokenLayout layout;  // of the net's output
  int64_t rows = 1;           // texts at once
  Context device;
  ComputeModes modes;
};

std::unique_ptr<TokenWindows> WholeWindows(const WindowRequest& request);
// A refusal names the layer for which it would not be right.
Expected<std::unique_ptr<TokenWindows>, Refusal> CachedWindows(const WindowRequest& request);

// Copies the model's parameters; labels, which no output depends on, and states that the model does
// not have become 0.
void FillExecutor(const Model& model, Executor* executor);

}  // namespace mxtrain::inference
