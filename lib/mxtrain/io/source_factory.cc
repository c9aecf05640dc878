// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/source_factory.h"

#include <algorithm>

#include "mxtrain/base/format.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/example_files.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/io/internal/cifar_source.h"
#include "mxtrain/io/internal/csv_source.h"
#include "mxtrain/io/internal/holdout_source.h"
#include "mxtrain/io/internal/list_source.h"
#include "mxtrain/io/internal/mnist_source.h"

namespace mxtrain::io {
namespace {

struct SourceEntry {
  const char* name;
  const char* help;
  int64_t num_classes;  // if the format fixes it, else 0
  std::vector<FieldInfo> (*describe)();
  std::unique_ptr<Source> (*make)(const Kwargs& kwargs, std::string_view kind);
};

template <typename Param, std::unique_ptr<Source> (*New)(const Param&)>
SourceEntry MakeSourceEntry(const char* name, const char* help, int64_t num_classes = 0) {
  return {name, help, num_classes, &Param::Describe,
          [](const Kwargs& kwargs, std::string_view kind) {
            Param param;
            param.Init(kwargs, kind);
            return New(param);
          }};
}

const std::vector<SourceEntry>& SourceEntries() {
  static const std::vector<SourceEntry> entries = {
      MakeSourceEntry<MnistParam, NewMnistSource>("mnist", "IDX files of MNIST and its relatives"),
      MakeSourceEntry<CifarParam, NewCifar10Source>("cifar10", "binary files of CIFAR-10", 10),
      MakeSourceEntry<CifarParam, NewCifar100Source>("cifar100",
                                                     "binary files of CIFAR-100, fine labels", 100),
      MakeSourceEntry<CsvParam, NewCsvSource>("csv", "numbers and image paths in text files"),
      MakeSourceEntry<ImageFolderParam, NewImageFolderSource>("image_folder",
                                                              "images, one folder per class"),
      MakeSourceEntry<ListParam, NewListSource>("list", "a text file that lists images and labels"),
      MakeSourceEntry<ImageListParam, NewImageListSource>("image_list", "images without labels"),
  };
  return entries;
}

// Removes the holdout parameters from `kwargs`.
HoldoutParam TakeHoldout(Kwargs* kwargs) {
  const auto ours = std::stable_partition(kwargs->begin(), kwargs->end(), [](const auto& item) {
    return !item.first.starts_with("holdout");
  });
  HoldoutParam param;
  param.Init(Kwargs(ours, kwargs->end()), "data");
  kwargs->erase(ours, kwargs->end());
  return param;
}

// A model stores the names of its classes as text.
void RequireText(const Source& source, const Kwargs& kwargs) {
  std::vector<std::string> names = source.class_names();
  for (const auto& [key, value] : source.found()) names.push_back(value);
  const auto bad =
      std::find_if_not(names.begin(), names.end(), [](const auto& name) { return IsUtf8(name); });
  if (bad == names.end()) return;
  const auto path = std::find_if(kwargs.begin(), kwargs.end(),
                                 [](const auto& item) { return item.first == "path"; });
  Throw(ErrorKind::kData,
        "{}: the class name '{}' is not UTF-8, so a model of it could not be used; rename the "
        "folder, or save the file as UTF-8",
        path == kwargs.end() ? "data" : path->second, Shortened(EscapedBytes(*bad)));
}

}  // namespace

std::vector<SourceInfo> ListSources() {
  std::vector<SourceInfo> infos;
  for (const SourceEntry& entry : SourceEntries())
    infos.push_back({entry.name, entry.help, entry.num_classes, entry.describe()});
  return infos;
}

std::unique_ptr<Source> MakeSource(std::string_view kind, const Kwargs& kwargs) {
  std::vector<std::string> names;
  for (const SourceEntry& entry : SourceEntries()) {
    names.emplace_back(entry.name);
    if (entry.name != kind) continue;
    Kwargs own = kwargs;
    const HoldoutParam holdout = TakeHoldout(&own);
    std::unique_ptr<Source> whole = entry.make(own, kind);
    RequireText(*whole, own);
    if (holdout.holdout == 0 && holdout.holdout_folds == 0) return whole;
    std::vector<int64_t> indices = HoldoutIndices(*whole, holdout, RootOf(own));
    return NewSubset(std::move(whole), std::move(indices));
  }
  Throw(ErrorKind::kConfig, "there is no data source '{}'{}; known are {}", kind,
        DidYouMean(kind, names), join(names, ", "));
}

}  // namespace mxtrain::io
