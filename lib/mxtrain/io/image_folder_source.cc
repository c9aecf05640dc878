// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_folder_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/internal/image_files.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool IsImage(const fs::path& path) {
  return HasImageEnding(path.string());
}

bool IsOtherImage(const fs::path& path) {
  return HasOtherImageEnding(path.string());
}

// False for a dangling or circular link.
bool LeadsToFolder(const fs::directory_entry& entry) {
  std::error_code broken;
  return entry.is_directory(broken);
}

// Files found in a folder.
struct Found {
  std::vector<std::string> images;  // sorted
  // Number of files of other kinds, and the first one.
  struct Others {
    int64_t count = 0;
    std::string first;
    void Add(const std::string& name, int64_t more = 1) {
      if (count == 0 || name < first) first = name;
      count += more;
    }
    void Add(const Others& other) {
      if (other.count > 0) Add(other.first, other.count);
    }
  };
  Others unread, others;  // images of unsupported formats; everything else
};

void Walk(const fs::path& folder, bool recursive, Found* found) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (IsHidden(entry.path())) continue;
    if (LeadsToFolder(entry)) {
      // A link may lead back up.
      if (recursive && !entry.is_symlink()) Walk(entry.path(), true, found);
    } else if (IsImage(entry.path())) {
      found->images.push_back(entry.path().string());
    } else {
      (IsOtherImage(entry.path()) ? found->unread : found->others).Add(entry.path().string());
    }
  }
}

Found FindImages(const fs::path& folder, bool recursive) {
  Found found;
  try {
    Walk(folder, recursive, &found);
  } catch (const fs::filesystem_error& error) {
    Throw(ErrorKind::kFileSystem, "cannot read the folder {}: {}", error.path1().string(),
          error.code().message());
  }
  std::sort(found.images.begin(), found.images.end());
  return found;
}

void Tell(const Found& found, ImageTable* table) {
  const auto& [unread_count, first_unread] = found.unread;
  const auto& [count, first] = found.others;
  if (unread_count > 0) {
    table->losses.push_back(
        format("{} of an unsupported format skipped: convert to JPEG or PNG (first: {})",
               Counted(unread_count, "image"), first_unread));
  }
  if (count > 0) {
    table->warnings.push_back(format("{} skipped, not named like a {} (first: {})",
                                     Counted(count, "file"), ImageFormatNames(), first));
  }
}

// Images beside the folders of the classes.
void TellOfNoClass(const std::string& path, ImageTable* table) {
  Found beside = FindImages(path, false);
  for (const std::string& image : beside.images) beside.unread.Add(image);
  const auto& [count, first] = beside.unread;
  if (count == 0) return;
  table->warnings.push_back(format("{} beside the class folders skipped, of no class (first: {})",
                                   Counted(count, "image"), first));
}

void RequireFolder(const std::string& path) {
  if (fs::is_directory(path)) return;
  Throw(ErrorKind::kFileSystem, "{} {}", path,
        fs::exists(path) ? "is not a folder" : "does not exist");
}

std::vector<std::string> ClassFolders(const std::string& path) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (LeadsToFolder(entry) && !IsHidden(entry.path()))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) {
    Throw(ErrorKind::kData, "{} holds no folders; one folder per class is expected", path);
  }
  return names;
}

void CheckFolders(const std::string& path, const std::vector<std::string>& folders,
                  const std::vector<std::string>& classes) {
  for (const std::string& folder : folders) {
    if (std::find(classes.begin(), classes.end(), folder) != classes.end()) continue;
    Throw(ErrorKind::kData, "the folder '{}' in {} is not one of the {} classes ({}){}", folder,
          path, classes.size(), join(classes, ", "), DidYouMean(folder, classes));
  }
}

}  // namespace

std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param) {
  RequireFolder(param.path);
  const std::vector<std::string> folders = ClassFolders(param.path);
  const bool given = !param.classes.empty();
  ImageTable table;
  table.label_width = 1;
  table.classes = given ? param.classes : folders;
  CheckFolders(param.path, folders, table.classes);
  Found all;
  for (size_t c = 0; c < table.classes.size(); ++c) {
    const fs::path folder = fs::path(param.path) / table.classes[c];
    const Found found = fs::is_directory(folder) ? FindImages(folder, true) : Found();
    if (found.images.empty() && !given) {
      Throw(ErrorKind::kData,
            "the class folder {} holds no images (.jpg .jpeg .png .bmp); fill it or remove it",
            folder.string());
    }
    if (found.images.empty())
      table.warnings.push_back(
          format("no images of class '{}' ({})", table.classes[c], folder.string()));
    table.paths.insert(table.paths.end(), found.images.begin(), found.images.end());
    table.labels.insert(table.labels.end(), found.images.size(), static_cast<float>(c));
    all.unread.Add(found.unread);
    all.others.Add(found.others);
  }
  Tell(all, &table);
  TellOfNoClass(param.path, &table);
  if (table.paths.empty())
    Throw(ErrorKind::kData, "no images (.jpg .jpeg .png .bmp) in {}", param.path);
  return NewImageFiles(std::move(table));
}

std::unique_ptr<Source> NewImageListSource(const ImageListParam& param) {
  if (param.path.empty() == param.files.empty())
    Throw(ErrorKind::kConfig, "image_list needs either 'path' or 'files'");
  ImageTable table;
  table.paths = param.files;
  if (!param.path.empty() && fs::is_regular_file(param.path)) {
    table.paths = {param.path};
  } else if (!param.path.empty()) {
    RequireFolder(param.path);
    Found found = FindImages(param.path, param.recursive);
    table.paths = std::move(found.images);
    Tell(found, &table);
    if (table.paths.empty()) {
      Throw(ErrorKind::kData, "no images (.jpg .jpeg .png .bmp) in {}{}", param.path,
            param.recursive ? "" : "; recursive = True includes its subfolders");
    }
  }
  return NewImageFiles(std::move(table));
}

}  // namespace mxtrain::io
