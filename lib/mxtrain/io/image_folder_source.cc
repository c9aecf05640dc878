#include "mxtrain/io/image_folder_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/suggest.h"
#include "mxtrain/io/picture_files.h"

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

// False for a link that leads nowhere or to itself.
bool LeadsToFolder(const fs::directory_entry& entry) {
  std::error_code broken;
  return entry.is_directory(broken);
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
    if (LeadsToFolder(entry)) {
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
    if (LeadsToFolder(entry) && !IsHidden(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    Throw(ErrorKind::kData,
          "image_folder: {} holds no folders; one folder per class is expected (for pictures without classes: image_list)", path);
  }
  return names;
}

void CheckFolders(const std::string& path, const std::vector<std::string>& folders, const std::vector<std::string>& classes) {
  for (const std::string& folder : folders) {
    if (std::find(classes.begin(), classes.end(), folder) != classes.end()) continue;
    Throw(ErrorKind::kData, "image_folder: the folder '{}' in {} is none of the {} classes ({}){}", folder, path, classes.size(),
          join(classes, ", "), DidYouMean(folder, classes));
  }
}

}  // namespace

std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param) {
  RequireFolder(param.path, "image_folder");
  const std::vector<std::string> folders = ClassFolders(param.path);
  const bool given = !param.classes.empty();
  PictureTable table;
  table.label_width = 1;
  table.classes = given ? param.classes : folders;
  CheckFolders(param.path, folders, table.classes);
  Found all;
  for (size_t c = 0; c < table.classes.size(); ++c) {
    const fs::path folder = fs::path(param.path) / table.classes[c];
    const Found found = fs::is_directory(folder) ? FindPictures(folder, true) : Found();
    if (found.pictures.empty() && !given) {
      Throw(ErrorKind::kData, "image_folder: the class folder {} holds no pictures (.jpg .jpeg .png .bmp); fill it or remove it",
            folder.string());
    }
    if (found.pictures.empty()) table.warnings.push_back(format("no pictures of class '{}' ({})", table.classes[c], folder.string()));
    table.paths.insert(table.paths.end(), found.pictures.begin(), found.pictures.end());
    table.labels.insert(table.labels.end(), found.pictures.size(), static_cast<float>(c));
    if (all.others == 0) all.first_other = found.first_other;
    all.others += found.others;
  }
  if (all.others) table.warnings.push_back(WarningOf(all));
  if (table.paths.empty()) Throw(ErrorKind::kData, "image_folder: no pictures (.jpg .jpeg .png .bmp) in {}", param.path);
  return NewPictureFiles(std::move(table));
}

std::unique_ptr<Source> NewImageListSource(const ImageListParam& param) {
  if (param.path.empty() == param.files.empty()) Throw(ErrorKind::kConfig, "image_list needs either 'path' or 'files'");
  PictureTable table;
  table.paths = param.files;
  if (!param.path.empty() && fs::is_regular_file(param.path)) {
    table.paths = {param.path};
  } else if (!param.path.empty()) {
    RequireFolder(param.path, "image_list");
    Found found = FindPictures(param.path, param.recursive);
    table.paths = std::move(found.pictures);
    if (found.others) table.warnings.push_back(WarningOf(found));
    if (table.paths.empty()) {
      Throw(ErrorKind::kData, "image_list: no pictures (.jpg .jpeg .png .bmp) in {}{}", param.path,
            param.recursive ? "" : "; recursive = True looks in its folders too");
    }
  }
  return NewPictureFiles(std::move(table));
}

}  // namespace mxtrain::io
