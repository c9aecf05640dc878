// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images of text, with what is written in them. Private to io.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/io/source.h"

namespace mxtrain::io {

struct TextLinesParam : Parameter<TextLinesParam> {
  std::string path, root, image_column, text_column, delimiter, alphabet;
  std::vector<std::string> classes;
  int64_t most_letters, label_length;
  bool labels;
  static void Declare(Fields<TextLinesParam>& f) {
    using P = TextLinesParam;
    f.Add("path", &P::path)
        .IsPath()
        .Required()
        .Help(
            "a list with PATH TEXT in each line, a table (.tsv, .csv) or JSON lines (.jsonl) with "
            "columns of both");
    f.Add("root", &P::root)
        .IsPath()
        .Default("")
        .Help("folder that image paths are relative to; default: the folder of the file");
    f.Add("image_column", &P::image_column)
        .Default("image")
        .Help("of a table: the column of the path, by name or number (from 0), or key of JSON");
    f.Add("text_column", &P::text_column)
        .Default("text")
        .Help("of a table: the column of the text, by name or number (from 0), or key of JSON");
    f.Add("delimiter", &P::delimiter)
        .Default("auto")
        .Help(
            "of a table, the separator between cells: one character, tab, or blanks; auto: "
            "whichever of , ; tab | is most frequent in the first line");
    f.Add("alphabet", &P::alphabet)
        .Default("")
        .Help(
            "the letters that a net knows, in the order of their classes; default: those of the "
            "training data, sorted");
    f.Add("most_letters", &P::most_letters)
        .Default(0)
        .Range(0, 1 << 16)
        .Help(
            "letters of a label; default: half as many again as the longest text of the training "
            "data has");
    f.Add("label_length", &P::label_length)
        .Internal()
        .Default(0)
        .Help("letters of a label of the training data");
    f.Add("classes", &P::classes)
        .Default({})
        .Internal()
        .Help("the letters of the training data, in the order of their classes");
    f.Add("labels", &P::labels)
        .Default(true)
        .Internal()
        .Help("False: texts are not read, and need not be there");
  }
};

// Fields: data (images of any size) and label, [letters]: of each letter of the text its class,
// counted from 1, as CTCLoss has it with the blank first; 0 after the last one. Classes are the
// letters: code points of UTF-8, sorted, or as `alphabet` has them. White space around a text is no
// part of it.
//
// Other data has the letters of the training data (`classes`) and the length of its labels
// (`label_length`): letters that it does not have are skipped in labels, longer texts are cut
// there, and the source warns of both. TextOf gives the whole text.
//
// Throws kFileSystem for a missing file; kData, with file and line, for lines without a text, and,
// in training data, letters that the alphabet does not have and texts longer than `most_letters`;
// kConfig for an alphabet with a letter twice, or that is not UTF-8. Missing images are detected
// when read.
MXTRAIN_API std::unique_ptr<Source> NewTextLinesSource(const TextLinesParam& param);

}  // namespace mxtrain::io
