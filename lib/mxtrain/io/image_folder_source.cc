#include "mxtrain/io/image_folder_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool IsPicture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".bmp";
}

// What a walk through a folder finds.
struct Found {
  std::vector<std::string> pictures;  // sorted
  int64_t others = 0;                 // files of other kinds
  std::string first_other;
};

void Walk(const fs::path& folder, bool recursive, Found* found) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (IsHidden(entry.path())) continue;
    if (entry.is_directory()) {
      if (recursive && !entry.is_symlink()) Walk(entry.path(), true, found);  // a link may lead back up
    } else if (IsPicture(entry.path())) {
      found->pictures.push_back(entry.path().string());
    } else {
      const std::string name = entry.path().string();
      if (found->others++ == 0 || name < found->first_other) found->first_other = name;
    }
  }
}

Found FindPictures(const fs::path& folder, bool recursive) {
  Found found;
  try {
    Walk(folder, recursive, &found);
  } catch (const fs::filesystem_error& error) {
    Throw(ErrorKind::kFileSystem, "cannot read the folder {}: {}", folder.string(), error.code().message());
  }
  std::sort(found.pictures.begin(), found.pictures.end());
  return found;
}

std::string WarningOf(const Found& found) {
  return format("{} file{} passed over, not named like a JPEG, PNG or BMP (first: {})", found.others, found.others == 1 ? "" : "s",
                found.first_other);
}

void RequireFolder(const std::string& path, const char* source) {
  if (fs::is_directory(path)) return;
  Throw(ErrorKind::kFileSystem, "{}: {} {}", source, path, fs::exists(path) ? "is not a folder" : "does not exist");
}

std::vector<std::string> ClassFolders(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_directory() && !IsHidden(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    Throw(ErrorKind::kData,
          "image_folder: {} holds no folders; one folder per class is expected (for pictures without classes: image_list)", path);
  }
  return names;
}

class ImageFolderSource final : public Source {
 public:
  explicit ImageFolderSource(const ImageFolderParam& param) : classes_(param.classes) {
    RequireFolder(param.path, "image_folder");
    const std::vector<std::string> folders = ClassFolders(param.path);
    const bool given = !classes_.empty();
    if (!given) classes_ = folders;
    CheckFolders(param.path, folders);
    Found all;
    for (size_t c = 0; c < classes_.size(); ++c) {
      const fs::path folder = fs::path(param.path) / classes_[c];
      const Found found = fs::is_directory(folder) ? FindPictures(folder, true) : Found();
      if (found.pictures.empty()) ReportEmpty(folder.string(), given);
      paths_.insert(paths_.end(), found.pictures.begin(), found.pictures.end());
      labels_.insert(labels_.end(), found.pictures.size(), static_cast<float>(c));
      if (all.others == 0) all.first_other = found.first_other;
      all.others += found.others;
    }
    if (all.others) warnings_.push_back(WarningOf(all));
    if (paths_.empty()) Throw(ErrorKind::kData, "image_folder: no pictures (.jpg .jpeg .png .bmp) in {}", param.path);
  }

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    const auto i = static_cast<size_t>(index);
    sample->data.resize(1);
    sample->labels.resize(1);
    sample->labels[0].values = {&labels_[i], 1};
    sample->data[0].encoded = ReadFile(paths_[i]);
  }
  std::string Name(int64_t index) const override { return paths_[static_cast<size_t>(index)]; }
  std::optional<int> ClassOf(int64_t index) const override { return static_cast<int>(labels_[static_cast<size_t>(index)]); }
  const std::vector<std::string>& class_names() const override { return classes_; }

 private:
  void CheckFolders(const std::string& path, const std::vector<std::string>& folders) const {
    for (const std::string& folder : folders) {
      if (std::find(classes_.begin(), classes_.end(), folder) != classes_.end()) continue;
      Throw(ErrorKind::kData, "image_folder: the folder '{}' in {} is none of the {} classes ({}){}", folder, path, classes_.size(),
            join(classes_, ", "), DidYouMean(folder, classes_));
    }
  }
  void ReportEmpty(const std::string& folder, bool given) {
    if (!given) {
      Throw(ErrorKind::kData, "image_folder: the class folder {} holds no pictures (.jpg .jpeg .png .bmp); fill it or remove it", folder);
    }
    warnings_.push_back(format("no pictures of class '{}' ({})", fs::path(folder).filename().string(), folder));
  }

  std::vector<std::string> paths_, classes_;
  std::vector<float> labels_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kPicture, TShape()}};
  std::vector<FieldSpec> label_fields_ = {{"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
};

class ImageListSource final : public Source {
 public:
  explicit ImageListSource(const ImageListParam& param) : paths_(param.files) {
    if (param.path.empty() == param.files.empty()) Throw(ErrorKind::kConfig, "image_list needs either 'path' or 'files'");
    if (param.path.empty()) return;
    if (fs::is_regular_file(param.path)) {
      paths_ = {param.path};
      return;
    }
    RequireFolder(param.path, "image_list");
    Found found = FindPictures(param.path, param.recursive);
    paths_ = std::move(found.pictures);
    if (found.others) warnings_.push_back(WarningOf(found));
    if (paths_.empty()) {
      Throw(ErrorKind::kData, "image_list: no pictures (.jpg .jpeg .png .bmp) in {}{}", param.path,
            param.recursive ? "" : "; recursive = True looks in its folders too");
    }
  }

  int64_t size() const override { return static_cast<int64_t>(paths_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.clear();
    sample->data[0].encoded = ReadFile(paths_[static_cast<size_t>(index)]);
  }
  std::string Name(int64_t index) const override { return paths_[static_cast<size_t>(index)]; }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return no_classes_; }

 private:
  std::vector<std::string> paths_, no_classes_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kPicture, TShape()}}, label_fields_;
};

}  // namespace

std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param) {
  return std::make_unique<ImageFolderSource>(param);
}
std::unique_ptr<Source> NewImageListSource(const ImageListParam& param) {
  return std::make_unique<ImageListSource>(param);
}

}  // namespace mxtrain::io
