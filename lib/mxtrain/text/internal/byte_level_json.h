// SPDX-License-Identifier: Apache-2.0
#pragma once
// tokenizer.json of byte-level BPE with GPT-2's splitter: what GPT-2's own files and training make.
#include <string>
#include <vector>

#include "mxtrain/base/json.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

// `vocabulary`: an object from tokens to ids. `merges`: an array of ["a", "b"]. Errors begin with
// `file_name`.
TokenizerPtr MakeByteLevelTokenizer(FileJson vocabulary, FileJson merges,
                                    const std::vector<SpecialToken>& special_tokens,
                                    const std::string& file_name);

}  // namespace mxtrain::text
