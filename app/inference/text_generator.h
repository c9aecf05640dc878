// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model run token by token.
#include <memory>
#include <span>
#include <vector>

#include "app/inference/token_sampler.h"
#include "app/tasks/language_model/token_scores.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain::inference {

// The tokenizer that a model was trained with. Throws kUsage for a model that has none.
text::TokenizerPtr TokenizerOf(const Model& model);

// Used on one thread. The runtime outlives it.
class TextGenerator {
 public:
  // `model`: without labels (RemoveLabels). Its net reads [N, length] tokens, of which none depends
  // on later ones, and says for each what comes next: [N, tokens, length] of SoftmaxOutput with
  // multi_output, or [N, length, tokens] with preserve_shape. Throws kUsage for another net.
  TextGenerator(Runtime& runtime, const Model& model, int64_t tokens, Context device,
                const ComputeModes& modes);

  int64_t length() const { return length_; }  // tokens that the net sees
  // Of the token after these, at least one; the net sees the last `length`. Valid until the next
  // call.
  std::span<float> After(std::span<const text::TokenId> tokens);

 private:
  int64_t length_ = 0;
  tasks::TokenLayout layout_;
  std::unique_ptr<Executor> executor_;
  NDArray input_;
  std::vector<float> ids_, next_;
};

}  // namespace mxtrain::inference
