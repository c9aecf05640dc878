// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text for language models: windows of its tokens, and for each token the next one. Private to io.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/internal/text_params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct TextParam : Parameter<TextParam> {
  enum Kind { kCharacters, kWords, kBytes };
  enum Packing { kNoPacking, kTexts, kLines };
  std::string path, tokenizer_file, tokenizer_text;
  int tokenizer, pack;
  int64_t length, stride, streams;
  std::vector<double> part;
  std::vector<std::string> text_columns;
  static void Declare(Fields<TextParam>& f) {
    f.Add("path", &TextParam::path)
        .IsPath()
        .Required()
        .Help(
            "a text file, a folder of .txt files, a table or JSON lines with a text in each row, "
            "or "
            "tokens that `mxtrain tokenize` wrote");
    f.Add("text_columns", &TextParam::text_columns)
        .Default({"text"})
        .Help("of a table or JSON lines, the columns or keys of the text, joined by blanks");
    f.Add("tokenizer", &TextParam::tokenizer)
        .Enum({{"characters", kCharacters}, {"words", kWords}, {"bytes", kBytes}})
        .Default(kCharacters)
        .Help("what a token is; characters and words are those of the text at path");
    AddTokenizerFile(f, &TextParam::tokenizer_file);
    f.Add("length", &TextParam::length)
        .Default(0)
        .Range(0)
        .Help("tokens of an example; default: those of the net's input");
    f.Add("stride", &TextParam::stride)
        .Default(0)
        .Range(0)
        .Help("tokens from where an example begins to where the next does; default: the length");
    f.Add("streams", &TextParam::streams)
        .Default(0)
        .Range(0, 1 << 20)
        .Help(
            "divides the tokens into so many equal streams, as many as data.batch_size; row k of "
            "each batch goes on where row k of the one before it ended (net.carry)");
    f.Add("pack", &TextParam::pack)
        .Enum({{"none", kNoPacking}, {"texts", kTexts}, {"lines", kLines}})
        .Default(kNoPacking)
        .Help(
            "an example is several whole documents, which do not see each other, and padding: "
            "texts (files, rows of a table, and what the tokenizer's end of a text separates), or "
            "lines");
    f.Add("part", &TextParam::part)
        .Default({0, 1})
        .Help("from where to where the tokens are taken, as fractions of them all: [0, 0.9]");
    AddTokenizerText(f, &TextParam::tokenizer_text);
  }
};

// Fields: data and label, [length] token ids each; the label is the data one token on. Files of a
// folder, or texts of rows, follow each other in their order, with the tokenizer's end of a text
// between them if it has one. What remains behind the last whole example is skipped. Class names
// are the tokens. With streams example i is window i / streams of stream i % streams; equal parts
// of the tokens are streams, and what remains behind them, or behind the last whole example of
// each, is skipped.
//
// With pack an example is whole documents, longer ones cut, in an order of their own; the label is
// -1 at padding. A second label, token_position [length], numbers the tokens of each document from
// 0 and is -1 at padding.
//
// Throws kFileSystem for a path that is not there, kData for text that the tokenizer cannot encode
// or that is shorter than an example, kConfig for parameters that make no sense.
MXTRAIN_API std::unique_ptr<Source> NewTextSource(const TextParam& param);

}  // namespace mxtrain::io
