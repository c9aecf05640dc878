// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/folder_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "mxtrain/base/text.h"

namespace mxtrain::io {
namespace {

struct SplitWord {
  std::string_view word;
  Split split;
};
constexpr SplitWord kSplitWords[] = {
    {"train", Split::kTrain},  {"training", Split::kTrain}, {"trn", Split::kTrain},
    {"val", Split::kVal},      {"valid", Split::kVal},      {"validation", Split::kVal},
    {"validate", Split::kVal}, {"dev", Split::kVal},        {"test", Split::kTest},
    {"testing", Split::kTest},
};
// Words beside it that say nothing: train_images, seg_test, TrainingSet.
constexpr std::string_view kFillers[] = {"set",  "data",  "dataset", "image", "images", "img",
                                         "imgs", "photo", "photos",  "split", "seg",    "folder"};

bool IsFiller(std::string_view word) {
  return word.empty() ||
         std::find(std::begin(kFillers), std::end(kFillers), word) != std::end(kFillers);
}

Split SplitOfWord(std::string_view word) {
  for (const auto& [known, split] : kSplitWords) {
    if (word.starts_with(known) && IsFiller(word.substr(known.size()))) return split;
  }
  return Split::kNone;
}

}  // namespace

Split SplitOf(std::string_view folder) {
  const std::string name = Lower(folder);
  Split split = Split::kNone;
  for (size_t begin = 0; begin < name.size();) {
    const auto is_letter = [&name](size_t i) { return name[i] >= 'a' && name[i] <= 'z'; };
    size_t end = begin;
    while (end < name.size() && is_letter(end)) ++end;
    const std::string_view word = std::string_view(name).substr(begin, end - begin);
    if (const Split here = SplitOfWord(word); here != Split::kNone) {
      if (split != Split::kNone) return Split::kNone;
      split = here;
    } else if (!IsFiller(word)) {
      return Split::kNone;
    }
    begin = end;
    constexpr std::string_view kBetween = "0123456789_-. ";
    if (begin < name.size() && kBetween.find(name[begin]) == std::string_view::npos)
      return Split::kNone;
    ++begin;
  }
  return split;
}

bool IsSystemFolder(std::string_view folder) {
  static constexpr std::string_view kNames[] = {
      "@eadir",   "@recycle",     "@recently-snapshot",        "#recycle",   "#snapshot",
      "__macosx", "$recycle.bin", "system volume information", "lost+found", "~snapshot"};
  return std::find(std::begin(kNames), std::end(kNames), Lower(folder)) != std::end(kNames);
}

}  // namespace mxtrain::io
