// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which columns of a file hold texts and their labels, for a configuration that is written for it.
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// By name; of a table without a header, by number.
struct FoundTextColumns {
  std::vector<std::string> texts;
  std::string label;
  // What separates the classes of a text that has several; "": a label is one class. Of lists in
  // JSON, a character that no class has.
  std::string label_delim;
};

// By the beginning of a table (.tsv, .csv, .tab, .txt) or JSON lines (.jsonl, .ndjson), each
// perhaps with .gz. The label is the column that is named so (label, class, category, ...), else
// the only one with few different values; texts are those others that have three words or more
// in most rows and, beside a label that is named so, the one named text. Labels are sets of classes
// if they are lists in JSON, if ; or | is in some, or if what commas separate are fewer classes
// than labels. Nothing if there is no label or no text. Throws kFileSystem for a file that cannot
// be read, and kData for one of fewer than four lines whose name is not .txt.
MXTRAIN_API std::optional<FoundTextColumns> FindTextColumns(const std::string& path);

// The only file of a folder that is named for training (train.tsv, my_training.csv.gz) and has such
// columns; "" if there is none, or more than one. Throws as FindTextColumns.
MXTRAIN_API std::string TrainingTextsIn(const std::string& folder);

}  // namespace mxtrain::io
