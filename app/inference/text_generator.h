// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model run token by token, on one text or several at once.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/inference/token_windows.h"
#include "mxtrain/base/log.h"
#include "mxtrain/text/chat_format.h"

namespace mxtrain::inference {

// The tokenizer that a model was trained with. Throws kUsage for a model that has none.
text::TokenizerPtr TokenizerOf(const Model& model);
// The format of the conversations that it was trained on; nothing for a model of texts.
std::optional<text::ChatFormat> ChatFormatOf(const Model& model);

// What a net sees of a text that is longer than its window: as soon as it does not fit, only its
// last `keep` tokens stay, and the window fills again. So a net sees more than `keep` tokens, up to
// `length`; which ones depends on the number of tokens alone.
struct WindowRule {
  int64_t length = 0, keep = 0;  // 0 < keep < length
  // Where the window of a text of so many tokens begins.
  int64_t Begin(int64_t tokens) const;
};

struct GenerationOptions {
  int64_t rows = 1;             // texts at once
  std::optional<int64_t> keep;  // of WindowRule; nothing: half of what the net reads
  bool caches = true;           // if the net allows it; the tokens are the same without
};

// Used on one thread. The runtime and the model outlive it.
class TextGenerator {
 public:
  // `model`: without labels (RemoveLabels). Its net reads [N, length] tokens, of which none depends
  // on later ones, and says for each what comes next: [N, tokens, length] of SoftmaxOutput with
  // multi_output, or [N, length, tokens] with preserve_shape. Logs why there are no caches. Throws
  // kUsage for another net, and for a `keep` that does not fit its length.
  TextGenerator(Runtime& runtime, const Model& model, int64_t tokens, Context device,
                const ComputeModes& modes, const GenerationOptions& options, const Logger& log);

  int64_t length() const { return rule_.length; }  // tokens that the net sees
  int64_t rows() const { return rows_; }
  // [rows, tokens]: of the token after each of these texts, as many as there are rows. An empty
  // text rests. Valid until the next call.
  std::span<float> After(std::span<const std::span<const text::TokenId>> texts);

 private:
  WindowRule rule_;
  const int64_t rows_;
  std::unique_ptr<TokenWindows> windows_;
  std::vector<float> next_;
};

}  // namespace mxtrain::inference
