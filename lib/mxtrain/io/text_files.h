// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts as the source `text` and `mxtrain tokenize` read them.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::io {

// The file, or the .txt files of a folder and of those below it, by their paths; without any its
// files of JSON lines (.jsonl, .ndjson). Throws kData for a folder without either.
MXTRAIN_API std::vector<std::string> TextFiles(const std::string& path);

// Whether a file holds a text in each row, by the end of its name, behind which .gz may stand: a
// table (.tsv, .csv, .tab) or JSON lines (.jsonl, .ndjson). Others are one text.
MXTRAIN_API bool HoldsRows(const std::string& path);

struct TextPaths {
  std::vector<std::string> files;
  // Of files with rows: the columns of the text, or keys of JSON, joined by blanks.
  std::vector<std::string> columns = {"text"};
};

// `name`: characters or words of these texts; bytes; a tokenizer.json, or a file of
// tokens, whose tokenizer it is; a folder with GPT-2's encoder.json and vocab.bpe. Throws kConfig
// for a name that is none of these, and what reading a file throws.
MXTRAIN_API text::TokenizerPtr OpenTokenizer(const std::string& name, const TextPaths& texts = {});

// Appends the tokens of a text; errors begin with its file.
MXTRAIN_API void EncodeFile(const text::Tokenizer& tokenizer, std::string_view text,
                            const std::string& file, text::Ids* ids);

// What stands between two texts: the tokenizer's end of a text, unless that is the end of a line,
// as of words, which a text has within it.
MXTRAIN_API std::optional<text::TokenId> SeparatorOf(const text::Tokenizer& tokenizer);
// A text that is to be continued, without the end of a line that words have where a text ends.
MXTRAIN_API text::Ids EncodeBeginning(const text::Tokenizer& tokenizer, std::string_view text);

// Whether a path is named as a file of tokens.
MXTRAIN_API bool IsTokenFileName(const std::string& path);

}  // namespace mxtrain::io
