// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts with labels, for classifiers: the ids of the tokens of each text. Private to io.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/internal/text_params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct LabelledTextParam : Parameter<LabelledTextParam> {
  enum Kind { kCharacters, kWords, kBytes };
  std::string path, label_column, label_delim, delimiter, tokenizer_file, encoder_text;
  std::vector<std::string> text_columns, classes;
  int tokenizer;
  int64_t length, vocabulary, least_count, ngrams, buckets;
  bool lowercase, split_punctuation, special_tokens, labels;
  static void Declare(Fields<LabelledTextParam>& f) {
    using P = LabelledTextParam;
    f.Add("path", &P::path)
        .IsPath()
        .Required()
        .Help("a table (.tsv, .csv) with a text and its label in each row, or JSON lines (.jsonl)");
    f.Add("text_columns", &P::text_columns)
        .Default({"text"})
        .Help(
            "columns of the text, by name or number (from 0), or keys of JSON; those of several "
            "are joined by blanks. With names the first line is the header, with numbers alone "
            "there is none");
    f.Add("label_column", &P::label_column)
        .Default("label")
        .Help("column of the label, by name or number (from 0), or key of JSON");
    f.Add("label_delim", &P::label_delim)
        .Default("")
        .Help(
            "separator between the classes of a multi-label example, such as ';' in 'cat;dog'; the "
            "label is then 0 or 1 for each class");
    f.Add("delimiter", &P::delimiter)
        .Default("auto")
        .Help(
            "separator between cells: one character, tab, or blanks (any number of spaces and "
            "tabs); auto: whichever of , ; tab | is most frequent in the first line, blanks if "
            "there is none");
    f.Add("tokenizer", &P::tokenizer)
        .Enum({{"characters", kCharacters}, {"words", kWords}, {"bytes", kBytes}})
        .Default(kWords)
        .Help("what a token is; characters and words are those of the training data");
    AddTokenizerFile(f, &P::tokenizer_file);
    f.Add("vocabulary", &P::vocabulary)
        .Default(0)
        .Range(0, 1 << 22)
        .Help(
            "with tokenizer: words, the most frequent words that have an id, of equally frequent "
            "ones the first by their bytes; 0: all");
    f.Add("least_count", &P::least_count)
        .Default(1)
        .Range(1)
        .Help("with tokenizer: words, how often a word must occur to have an id");
    f.Add("lowercase", &P::lowercase)
        .Default(false)
        .Help("capital letters become small ones, before the tokenizer");
    f.Add("split_punctuation", &P::split_punctuation)
        .Default(false)
        .Help("punctuation marks are words of their own, before the tokenizer");
    f.Add("special_tokens", &P::special_tokens)
        .Default(false)
        .Help(
            "with tokenizer_file: what the tokenizer puts around a text, such as [CLS] and [SEP]; "
            "a text that is cut keeps them");
    f.Add("ngrams", &P::ngrams)
        .Default(1)
        .Range(1, 8)
        .Help("behind the tokens come the n-grams of 2 to so many of them, hashed into buckets");
    f.Add("buckets", &P::buckets).Default(0).Range(0, 1 << 24).Help("ids of n-grams");
    f.Add("length", &P::length)
        .Default(0)
        .Range(0)
        .Help("ids of an example, a longer text is cut; default: those of the net's input");
    f.Add("encoder_text", &P::encoder_text)
        .Internal()
        .Default("")
        .Help("how the training data was read, as other data is: tokenizer, n-grams");
    f.Add("labels", &P::labels)
        .Default(true)
        .Internal()
        .Help("False: labels are not read; files of other names hold a text in each line");
    f.Add("classes", &P::classes)
        .Default({})
        .Internal()
        .Help("class names in the order of their numbers; default: the labels found, sorted");
  }
};

// Fields: data, [length] ids (text/text_encoder.h), padded at the end or cut, and label, a class or
// with label_delim 0 or 1 for each class.
//
// Throws kFileSystem for a missing file; kConfig for columns that are not there and parameters that
// contradict each other; kData, with file and line, for rows of other lengths, JSON that is not an
// object with the keys, labels that are empty or none of the classes, and texts that the tokenizer
// cannot encode.
MXTRAIN_API std::unique_ptr<Source> NewLabelledTextSource(const LabelledTextParam& param);

}  // namespace mxtrain::io
