#include "mxtrain/io/source_factory.h"

#include "mxtrain/base/suggest.h"
#include "mxtrain/io/csv_source.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/io/mnist_source.h"

namespace mxtrain::io {
namespace {

struct Entry {
  const char* name;
  const char* help;
  std::vector<FieldInfo> (*describe)();
  std::unique_ptr<Source> (*make)(const Kwargs& kwargs, std::string_view kind);
};

template <typename Param, std::unique_ptr<Source> (*New)(const Param&)>
Entry MakeEntry(const char* name, const char* help) {
  return {name, help, &Param::Describe, [](const Kwargs& kwargs, std::string_view kind) {
            Param param;
            param.Init(kwargs, kind);
            return New(param);
          }};
}

const std::vector<Entry>& Entries() {
  static const std::vector<Entry> entries = {
      MakeEntry<MnistParam, NewMnistSource>("mnist", "IDX files of MNIST and its relatives"),
      MakeEntry<CsvParam, NewCsvSource>("csv", "numbers in text files"),
      MakeEntry<ImageFolderParam, NewImageFolderSource>("image_folder", "pictures, a folder per class"),
      MakeEntry<ImageListParam, NewImageListSource>("image_list", "pictures without labels"),
  };
  return entries;
}

}  // namespace

std::vector<SourceInfo> ListSources() {
  std::vector<SourceInfo> infos;
  for (const Entry& entry : Entries()) infos.push_back({entry.name, entry.help, entry.describe()});
  return infos;
}

std::unique_ptr<Source> MakeSource(std::string_view kind, const Kwargs& kwargs) {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) {
    if (entry.name == kind) return entry.make(kwargs, kind);
    names.emplace_back(entry.name);
  }
  Throw(ErrorKind::kConfig, "there is no data source '{}'{}; known are {}", kind, DidYouMean(kind, names), join(names, ", "));
}

}  // namespace mxtrain::io
