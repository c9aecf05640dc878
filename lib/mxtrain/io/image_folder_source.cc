// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/image_folder_source.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "mxtrain/base/glob.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image_formats.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool IsImageFile(const fs::path& path) {
  return HasImageEnding(path.string());
}

bool IsOtherImageFile(const fs::path& path) {
  return HasOtherImageEnding(path.string());
}

// False for a dangling or circular link.
bool LeadsToFolder(const fs::directory_entry& entry) {
  std::error_code broken;
  return entry.is_directory(broken);
}

// Folders that are skipped by patterns of their names.
class Exclusion {
 public:
  explicit Exclusion(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}
  bool Takes(const fs::path& folder) {
    bool taken = false;
    for (const std::string& pattern : patterns_) {
      if (!GlobMatches(pattern, folder.filename().string())) continue;
      used_.insert(pattern);
      taken = true;
    }
    return taken;
  }
  void RequireAllUsed(const std::string& path) const {
    for (const std::string& pattern : patterns_) {
      if (!used_.contains(pattern))
        Throw(ErrorKind::kData, "exclude: '{}': there is no such folder in {}", pattern, path);
    }
  }

 private:
  const std::vector<std::string> patterns_;
  std::set<std::string> used_;
};

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
  Others system;          // folders that are skipped by name
  Others upwards;         // links that are not followed
};

// Collects the images in a folder; with `recursive` also those in its subfolders, and in folders
// that links lead to. A folder is entered once, by its own path rather than by a link; a link to
// the folder itself, or to one that it lies in, is not followed.
class Walk {
 public:
  // `exclusion`: null: none.
  Walk(const fs::path& root, bool recursive, Exclusion* exclusion, Found* found)
      : recursive_(recursive),
        exclusion_(exclusion),
        found_(*found),
        root_(fs::canonical(root)),
        shown_in_(fs::canonical(fs::absolute(root).lexically_normal().parent_path())) {
    Enter(root);
    for (size_t i = 0; i < links_.size(); ++i) {  // Enter may find more
      const fs::path target = fs::canonical(links_[i]), link = links_[i];
      if (IsWithin(root_, target) || IsWithin(shown_in_, target)) {
        found_.upwards.Add(link.string());
      } else {
        Enter(link);
      }
    }
  }

 private:
  static bool IsWithin(const fs::path& path, const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
           folder.end();
  }

  void Enter(const fs::path& folder) {
    if (!entered_.insert(fs::canonical(folder).string()).second) return;
    std::vector<fs::path> folders, links;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (IsHidden(entry.path())) continue;
      if (LeadsToFolder(entry)) {
        if (IsSystemFolder(entry.path().filename().string())) {
          found_.system.Add(entry.path().string());
        } else if (recursive_ && !(exclusion_ && exclusion_->Takes(entry.path()))) {
          (entry.is_symlink() ? links : folders).push_back(entry.path());
        }
      } else if (IsImageFile(entry.path())) {
        found_.images.push_back(entry.path().string());
      } else {
        (IsOtherImageFile(entry.path()) ? found_.unread : found_.others).Add(entry.path().string());
      }
    }
    // The order of a folder's entries differs between machines.
    std::sort(folders.begin(), folders.end());
    std::sort(links.begin(), links.end());
    for (const fs::path& below : folders) Enter(below);
    links_.insert(links_.end(), links.begin(), links.end());
  }

  const bool recursive_;
  Exclusion* const exclusion_;
  Found& found_;
  const fs::path root_, shown_in_;  // its own place, and the folder that its path names
  std::set<std::string> entered_;
  std::vector<fs::path> links_;
};

Found FindImages(const fs::path& folder, bool recursive, Exclusion* exclusion = nullptr) {
  Found found;
  try {
    Walk(folder, recursive, exclusion, &found);
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
  if (found.system.count > 0) {
    table->warnings.push_back(format(
        "{} of the system skipped by name, with what is in it, such as thumbnails (first: {})",
        Counted(found.system.count, "folder"), found.system.first));
  }
  if (found.upwards.count > 0) {
    table->warnings.push_back(
        format("{} not followed: a link to a folder that it lies in (first: {})",
               Counted(found.upwards.count, "link"), found.upwards.first));
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

// Those that are skipped by name are told with *found.
std::vector<std::string> ClassFolders(const std::string& path, Exclusion* exclusion, Found* found) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (!LeadsToFolder(entry) || IsHidden(entry.path()) || exclusion->Takes(entry.path())) continue;
    std::string name = entry.path().filename().string();
    if (IsSystemFolder(name)) {
      found->system.Add(entry.path().string());
    } else {
      names.push_back(std::move(name));
    }
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
          path, classes.size(), join(classes, ", "), WhyNotAmong(folder, classes));
  }
}

// Two folders with the same name to the eye are two classes.
void TellSameToTheEye(const std::vector<std::string>& folders, ImageTable* table) {
  for (size_t i = 0; i < folders.size(); ++i) {
    const std::vector<std::string> before(folders.begin(),
                                          folders.begin() + static_cast<ptrdiff_t>(i));
    const std::string why = ComposedDifferently(folders[i], before);
    if (!why.empty())
      table->warnings.push_back(format("the class '{}' is one of its own{}", folders[i], why));
  }
}

// Parts of a data set are not classes.
void TellSplits(const std::string& path, const std::vector<std::string>& folders,
                ImageTable* table) {
  const auto is_split = [&path](const std::string& name) {
    if (SplitOf(name) == Split::kNone) return false;
    const fs::directory_iterator entries(fs::path(path) / name);
    return std::any_of(begin(entries), end(entries), LeadsToFolder);
  };
  const auto training = std::find_if(folders.begin(), folders.end(), [](const std::string& name) {
    return SplitOf(name) == Split::kTrain;
  });
  if (training == folders.end() || !std::all_of(folders.begin(), folders.end(), is_split)) return;
  table->warnings.push_back(
      format("the classes of {} are {}, which look like the parts of a data set; to train on the "
             "classes in them give one as the path: {}",
             path, join(folders, ", "), (fs::path(path) / *training).string()));
}

}  // namespace

std::unique_ptr<Source> NewImageFolderSource(const ImageFolderParam& param) {
  RequireFolder(param.path);
  Found all;
  Exclusion exclusion(param.exclude);
  const std::vector<std::string> folders = ClassFolders(param.path, &exclusion, &all);
  const bool given = !param.classes.empty();
  ImageTable table;
  table.label_width = 1;
  table.classes = given ? param.classes : folders;
  CheckFolders(param.path, folders, table.classes);
  TellSameToTheEye(folders, &table);
  if (!given) TellSplits(param.path, folders, &table);
  for (size_t c = 0; c < table.classes.size(); ++c) {
    const fs::path folder = fs::path(param.path) / table.classes[c];
    const Found found = fs::is_directory(folder) ? FindImages(folder, true, &exclusion) : Found();
    if (found.images.empty() && !given) {
      Throw(ErrorKind::kData,
            "the class folder {} holds no images (.jpg .jpeg .png .bmp); fill it, remove it, or "
            "name it in exclude",
            folder.string());
    }
    if (found.images.empty())
      table.warnings.push_back(
          format("no images of class '{}' ({})", table.classes[c], folder.string()));
    table.paths.insert(table.paths.end(), found.images.begin(), found.images.end());
    table.labels.insert(table.labels.end(), found.images.size(), static_cast<float>(c));
    all.unread.Add(found.unread);
    all.others.Add(found.others);
    all.system.Add(found.system);
    all.upwards.Add(found.upwards);
  }
  if (!given) exclusion.RequireAllUsed(param.path);
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

// One folder for each class, or images without classes in one folder and those below it.
static std::unique_ptr<Source> NewUnlabelledFolder(const Kwargs& kwargs) {
  ImageFolderParam param;
  param.Init(kwargs, "image_folder");
  RequireFolder(param.path);
  if (FindImages(param.path, false).images.empty()) return NewImageFolderSource(param);
  ImageListParam list;
  list.Init({{"path", param.path}, {"recursive", "True"}}, "image_folder");
  return NewImageListSource(list);
}

MXTRAIN_SOURCE(image_folder_source, sources) {
  SourceKind folder = SourceKindOf<ImageFolderParam, NewImageFolderSource>(
      "image_folder", "images, one folder per class");
  folder.make_unlabelled = NewUnlabelledFolder;
  folder.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (!std::filesystem::is_directory(path)) return std::nullopt;
    return Recognition{false, {{"path", path}}};
  };
  sources.Add(std::move(folder));
  SourceKind list =
      SourceKindOf<ImageListParam, NewImageListSource>("image_list", "images without labels");
  list.in_configurations = false;
  sources.Add(std::move(list));
}

}  // namespace mxtrain::io
