// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters that the sources of texts share. Private to io.
#include <string>

#include "mxtrain/base/params.h"

namespace mxtrain::io {

// "tokenizer_file", which stands for `tokenizer`.
template <typename Param>
void AddTokenizerFile(Fields<Param>& f, std::string Param::*field) {
  f.Add("tokenizer_file", field)
      .IsPath()
      .Default("")
      .Help(
          "instead of tokenizer: a tokenizer.json, or a folder with GPT-2's encoder.json and "
          "vocab.bpe");
}

// "tokenizer_text", internal, found in the training data.
template <typename Param>
void AddTokenizerText(Fields<Param>& f, std::string Param::*field) {
  f.Add("tokenizer_text", field)
      .Internal()
      .Default("")
      .Help("the tokenizer of the training data, which other data is read with");
}

}  // namespace mxtrain::io
