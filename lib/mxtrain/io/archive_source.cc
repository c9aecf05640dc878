// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image_archive.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

// The part of a path up to the first slash behind `begin`; nothing if there is none.
std::string FolderAt(const std::string& name, size_t begin) {
  const size_t end = name.find('/', begin);
  return end == std::string::npos ? "" : name.substr(begin, end - begin);
}

class ArchiveSource final : public Source {
 public:
  explicit ArchiveSource(const ImageArchiveParam& param)
      : archive_(param.path),
        prefix_(param.path == "/dev/stdin" ? "stdin/" : param.path + "/"),
        classes_(param.classes) {
    warnings_ = archive_.warnings();
    if (archive_.size() == 0) Throw(ErrorKind::kData, "{} holds no images", param.path);
    if (archive_.held() > 0)
      notes_.push_back(format("{} is compressed: {} of images are held in memory", param.path,
                              FormatBytes(archive_.held())));
    if (!param.labels) {
      for (int64_t i = 0; i < archive_.size(); ++i) places_.push_back(i);
      return;
    }
    label_fields_ = {{"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
    TakeClasses(param);
  }

  int64_t size() const override { return static_cast<int64_t>(places_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    if (!labels_.empty()) sample->labels[0].values = LabelOf(index, 0, nullptr);
    archive_.Read(At(index), &sample->data[0].encoded);
  }
  std::span<const float> LabelOf(int64_t index, size_t, Sample*) const override {
    return std::span(labels_).subspan(static_cast<size_t>(index), 1);
  }
  std::string Name(int64_t index) const override { return prefix_ + archive_.Name(At(index)); }
  std::optional<int> ClassOf(int64_t index) const override {
    if (labels_.empty()) return std::nullopt;
    return static_cast<int>(labels_[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return classes_; }

 private:
  int64_t At(int64_t index) const { return places_[static_cast<size_t>(index)]; }

  // What the paths of all images below `folder` begin with, down to the folders of the classes.
  std::string RootIn(const std::string& folder) const {
    std::string root = folder.empty() || folder.ends_with('/') ? folder : folder + "/";
    std::vector<const std::string*> names;
    for (int64_t i = 0; i < archive_.size(); ++i) {
      if (archive_.Name(i).starts_with(root)) names.push_back(&archive_.Name(i));
    }
    while (folder.empty() && !names.empty()) {
      const std::string first = FolderAt(*names[0], root.size());
      if (first.empty() || !std::ranges::all_of(names, [&](const std::string* name) {
            return FolderAt(*name, root.size()) == first &&
                   !FolderAt(*name, root.size() + first.size() + 1).empty();
          }))
        break;
      root += first + "/";
    }
    return root;
  }

  void TakeClasses(const ImageArchiveParam& param) {
    const std::string root = RootIn(param.folder);
    std::set<std::string> folders;
    std::vector<std::string> names;  // of the classes, by image
    int64_t beside = 0;
    for (int64_t i = 0; i < archive_.size(); ++i) {
      const std::string& name = archive_.Name(i);
      if (!name.starts_with(root)) continue;
      const std::string folder = FolderAt(name, root.size());
      if (folder.empty()) {
        ++beside;
        continue;
      }
      folders.insert(folder);
      places_.push_back(i);
      names.push_back(folder);
    }
    const std::string where = prefix_ + root;
    if (places_.empty())
      Throw(ErrorKind::kData, "{} holds no images in folders; one folder per class is expected",
            where.substr(0, where.size() - 1));
    RefuseParts(folders, root);
    if (beside > 0)
      warnings_.push_back(format("{} beside the class folders of {} skipped, of no class",
                                 Counted(beside, "image"), where));
    if (classes_.empty()) classes_.assign(folders.begin(), folders.end());
    for (const std::string& name : names) {
      const auto found = std::ranges::find(classes_, name);
      if (found == classes_.end()) {
        Throw(ErrorKind::kData, "the folder '{}' in {} is not one of the {} classes ({}){}", name,
              where, classes_.size(), join(classes_, ", "), WhyNotAmong(name, classes_));
      }
      labels_.push_back(static_cast<float>(found - classes_.begin()));
    }
    for (const std::string& name : classes_) {
      if (!folders.contains(name))
        warnings_.push_back(format("no images of class '{}' ({}{})", name, where, name));
    }
  }

  void RefuseParts(const std::set<std::string>& folders, const std::string& root) const {
    const auto part = [](const std::string& name) { return SplitOf(name) != Split::kNone; };
    const ArchiveParts parts = PartsOf(archive_);
    if (parts.train.empty() || !std::ranges::all_of(folders, part)) return;
    Throw(ErrorKind::kData,
          "the folders in {}{} are {}, which look like the parts of a data set; name the one to "
          "read: "
          "folder: {}",
          prefix_, root, join(std::vector<std::string>(folders.begin(), folders.end()), ", "),
          parts.train);
  }

  const ImageArchive archive_;
  const std::string prefix_;     // of names
  std::vector<int64_t> places_;  // of the images, in the archive
  std::vector<float> labels_;    // of each; empty without labels
  std::vector<std::string> classes_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}}, label_fields_;
};

std::unique_ptr<Source> NewUnlabelledArchive(const Kwargs& kwargs) {
  ImageArchiveParam param;
  param.Init(kwargs, "image_archive");
  param.labels = false;
  return NewImageArchiveSource(param);
}

}  // namespace

std::unique_ptr<Source> NewImageArchiveSource(const ImageArchiveParam& param) {
  return std::make_unique<ArchiveSource>(param);
}

MXTRAIN_SOURCE(archive_source, sources) {
  SourceKind kind = SourceKindOf<ImageArchiveParam, NewImageArchiveSource>(
      "image_archive", "images in a tar or zip archive, one folder per class");
  kind.make_unlabelled = NewUnlabelledArchive;
  // Another archive has folders of its own.
  kind.of_own_data = {"folder"};
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (!IsImageArchive(path)) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
