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
};

// By the beginning of a table (.tsv, .csv, .tab, .txt) or JSON lines (.jsonl, .ndjson), each
// perhaps with .gz. The label is the column that is named so (label, class, category, ...), else
// the only one with few different values; texts are those others that have several words in most
// rows. Nothing if there is no label or no text. Throws kFileSystem for a file that cannot be read.
MXTRAIN_API std::optional<FoundTextColumns> FindTextColumns(const std::string& path);

}  // namespace mxtrain::io
