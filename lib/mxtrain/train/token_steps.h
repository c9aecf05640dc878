// SPDX-License-Identifier: Apache-2.0
#pragma once
// A causal net made to run token by token. Of a net that reads a window of tokens, the same net for
// the next few of them, with what earlier ones left behind in auxiliary states: each
// scaled_dot_product_attention with is_causal becomes cached_attention.
//
// That is right only if no other layer mixes tokens, which is decided layer by layer: for each
// array it is followed which axis is the batch and which the tokens, and a layer is taken if it is
// known to keep the elements of one token apart from those of others: element-wise functions,
// FullyConnected, norms, softmax and gathers along other axes, transposes, reshapes that keep both
// axes. Whatever is not known to do so is refused by name. Constants that have a value for each
// place of the window, such as positions that are learnt, are read at the places of the tokens.
#include <memory>
#include <string>

#include "mxtrain/base/expected.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

// Immutable.
class MXTRAIN_API TokenSteps {
 public:
  // `net`: with one output, which reads `input` [batch, window]; variables that no output depends
  // on, such as labels, may remain. A refusal names the layer that is in the way.
  static Expected<TokenSteps, Refusal> Of(const OperatorRegistry& operators, const Symbol& net,
                                          const std::string& input, int64_t window);

  // The net for so many tokens of each row, at most the window: it reads `input` [batch, tokens]
  // and, unless no layer depends on places, position() [batch], the place of the first of these
  // tokens in the window; a row with a negative one rests (cached_attention). The output is as the
  // net's, of these tokens. Auxiliary states have the same names and shapes for every number of
  // tokens, and are shared by the executors of several.
  Symbol Net(int64_t batch, int64_t tokens) const;
  // The part of it that fills the caches; without outputs if there is no attention.
  Symbol Filling(int64_t batch, int64_t tokens) const;
  const std::string& position() const;
  int tokens_axis() const;  // of the output

 private:
  struct Rep;
  explicit TokenSteps(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

}  // namespace mxtrain
