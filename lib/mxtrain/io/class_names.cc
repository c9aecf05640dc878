// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/class_names.h"

#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostClassNamesBytes = size_t{64} << 20;

}  // namespace

std::vector<std::string> ReadClassNames(const std::string& file) {
  std::vector<std::string> names;
  std::set<std::string> known;
  const std::string text = PlainText(ReadFile(file, kMostClassNamesBytes), file);
  ForEachLine(text, [&](std::string_view line, int64_t number) {
    names.emplace_back(line);
    if (number != std::ssize(names)) {
      Throw(ErrorKind::kData,
            "{}:{}: the line before it is empty, but each line names a class, in the order of "
            "their numbers",
            file, number);
    }
    if (!known.insert(names.back()).second)
      Throw(ErrorKind::kData, "{}:{}: a second class '{}'", file, number, Shortened(line));
  });
  return names;
}

std::string ClassNameLines(const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) {
    if (name.empty() || name != Trim(name, kBlanks) ||
        name.find_first_of("\r\n") != std::string::npos)
      Throw(ErrorKind::kData, "the class name '{}' cannot be a line of a file; rename the class",
            Shortened(name));
    lines += name + "\n";
  }
  return lines;
}

}  // namespace mxtrain::io
