// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/yolo_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/image_files.h"
#include "mxtrain/io/internal/numbered_classes.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostYoloBytes = size_t{64} << 20;  // of the objects of an image
constexpr size_t kMostYoloListBytes = size_t{1} << 30;
constexpr int64_t kMostYoloClasses = 10'000;

std::vector<std::string_view> CellsBetweenBlanks(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end;
  }
  return cells;
}

// A line of a file: its class, and the edges as shares of the image's size.
struct YoloObject {
  int64_t number = 0, line = 0;
  double left = 0, top = 0, right = 0, bottom = 0;
};

std::string WhyNoYoloCount(size_t count) {
  const char* const why =
      count == 6
          ? "; the sixth looks like a score, as in what a detector found, which are no labels"
          : "";
  return format(
      "{}, expected 5 (class, x, y, width, height), or a class and x, y of each corner "
      "of a polygon{}",
      Counted(count, "number"), why);
}

// Null: the line is not of this form, and *why says what is wrong.
std::optional<YoloObject> ParseYoloLine(std::string_view text, std::string* why) {
  const std::vector<std::string_view> cells = CellsBetweenBlanks(text);
  std::vector<double> values(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    if (ParseNumber(cells[i], &values[i]) && std::abs(values[i]) < 1e9) continue;
    *why = format("'{}' is not a number{}", Shortened(cells[i]),
                  i == 0 ? "; the first of a line is the number of its class" : "");
    return std::nullopt;
  }
  if (values.size() != 5 && (values.size() < 7 || values.size() % 2 == 0)) {
    *why = WhyNoYoloCount(values.size());
    return std::nullopt;
  }
  if (values[0] < 0 || values[0] != std::floor(values[0])) {
    *why = format("'{}' is not a class number; these are 0, 1, ...", Shortened(cells[0]));
    return std::nullopt;
  }
  // Boxes may reach beyond the image a little; a whole image beyond it they are something else.
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] >= -1 && values[i] <= 2) continue;
    *why =
        format("'{}' is not a share of the image's size, which goes from 0 to 1; are these pixels?",
               Shortened(cells[i]));
    return std::nullopt;
  }
  YoloObject object{.number = static_cast<int64_t>(values[0])};
  if (values.size() == 5) {
    object.left = values[1] - values[3] / 2, object.right = values[1] + values[3] / 2;
    object.top = values[2] - values[4] / 2, object.bottom = values[2] + values[4] / 2;
    return object;
  }
  object.left = object.right = values[1];
  object.top = object.bottom = values[2];
  for (size_t i = 3; i < values.size(); i += 2) {
    object.left = std::min(object.left, values[i]);
    object.right = std::max(object.right, values[i]);
    object.top = std::min(object.top, values[i + 1]);
    object.bottom = std::max(object.bottom, values[i + 1]);
  }
  return object;
}

std::vector<YoloObject> ReadYoloFile(const std::string& file) {
  std::vector<YoloObject> objects;
  const std::string text = PlainText(ReadFile(file, kMostYoloBytes), file);
  ForEachLine(text, [&](std::string_view line, int64_t number) {
    std::string why;
    const auto object = ParseYoloLine(line, &why);
    if (!object) Throw(ErrorKind::kData, "{}:{}: {}", file, number, why);
    objects.push_back(*object);
    objects.back().line = number;
  });
  return objects;
}

// Where the file of an image is, by the folders' names: the last one named images becomes labels.
// Empty if there is none.
fs::path WithLabelsForImages(const fs::path& path) {
  const std::vector<fs::path> parts(path.begin(), path.end());
  const auto last = std::find_if(parts.rbegin(), parts.rend(), [](const fs::path& part) {
    return part == "images" || part == "JPEGImages";
  });
  fs::path renamed;
  if (last == parts.rend()) return renamed;
  const auto index = static_cast<size_t>(parts.rend() - last) - 1;
  for (size_t i = 0; i < parts.size(); ++i) renamed /= i == index ? fs::path("labels") : parts[i];
  return renamed;
}

bool IsNamesFile(const fs::path& file) {
  const std::string name = Lower(file.filename().string());
  return name == "classes.txt" || name == "_darknet.labels" || name.ends_with(".names");
}

// Finds images, and the files of their objects.
class YoloFiles {
 public:
  explicit YoloFiles(const YoloParam& param) : given_(param.annotations) {
    if (!given_.empty() && !fs::is_directory(given_))
      Throw(ErrorKind::kFileSystem, "{} is no folder", given_);
    if (fs::is_directory(param.path)) {
      SearchFolder(param.path);
    } else {
      ReadList(param.path);
    }
  }

  std::vector<std::string>& images() { return images_; }
  const std::string& folder() const { return folder_; }  // of the images, or of their list
  // Of one image; empty if there is none.
  std::string FileOf(const std::string& image) const {
    const fs::path text = fs::path(image).replace_extension(".txt");
    if (!given_.empty()) return IfThere(fs::path(given_) / BelowFolder(text));
    fs::path renamed = WithLabelsForImages(text);
    if (renamed.empty()) renamed = WithLabelsForImages(fs::absolute(text).lexically_normal());
    for (const fs::path& file : {renamed, text}) {
      if (std::string there = IfThere(file); !there.empty()) return there;
    }
    return found_.empty() ? "" : IfThere(fs::path(found_) / BelowFolder(text));
  }

 private:
  // A list of names is no annotation of an image 'classes.jpg'.
  static std::string IfThere(const fs::path& file) {
    std::error_code none;
    return !file.empty() && !IsNamesFile(file) && fs::exists(file, none) ? file.string() : "";
  }
  fs::path BelowFolder(const fs::path& file) const {
    const fs::path below = file.lexically_relative(folder_);
    return below.empty() || *below.begin() == ".." ? file.filename() : below;
  }

  void SearchFolder(const std::string& path) {
    const auto found = FindAnnotations(path, ".txt");
    const fs::path below = fs::path(path) / "images";
    folder_ = fs::is_directory(below) ? below.string() : found ? found->images : path;
    if (found) found_ = found->annotations;
    images_ = ImagesIn(folder_);
  }

  void ReadList(const std::string& list) {
    folder_ = fs::path(list).parent_path().string();
    const std::string text =
        PlainText(ReadFile(list, kMostYoloListBytes, Readable::kFileOrPipe), list);
    ForEachLine(text, [&](std::string_view line, int64_t number) {
      CheckPath(line, [&] { return format("{}:{}", list, number); });
      images_.push_back((fs::path(folder_) / line).lexically_normal().string());
    });
    if (images_.empty()) Throw(ErrorKind::kData, "{} names no images", list);
  }

  const std::string given_;
  std::string folder_, found_;
  std::vector<std::string> images_;
};

// The list of names in a folder; empty if there is none. Several with the ending .names may be of
// other data.
std::string NamesFileIn(const fs::path& folder) {
  std::error_code none;
  for (const char* name : {"classes.txt", "obj.names"}) {
    if (fs::is_regular_file(folder / name, none)) return (folder / name).string();
  }
  std::vector<std::string> others;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (Lower(entry.path().extension().string()) == ".names")
      others.push_back(entry.path().string());
  }
  if (others.size() == 1) return others[0];
  const fs::path darknet = folder / "_darknet.labels";
  return fs::is_regular_file(darknet, none) ? darknet.string() : "";
}

// In the folders, or one or two above.
std::string FindNamesFile(const std::vector<std::string>& folders) {
  constexpr int kLevels = 3;
  std::vector<fs::path> at;
  for (const std::string& folder : folders)
    at.push_back(fs::absolute(fs::path(".") / folder / "").lexically_normal().parent_path());
  for (int level = 0; level < kLevels; ++level) {
    for (fs::path& folder : at) {
      if (std::string file = NamesFileIn(folder); !file.empty()) return file;
      folder = folder.parent_path();
    }
  }
  return "";
}

// The size of an image as it is shown. The headers of JPEG and PNG are at the beginning, with all
// that says how they are shown; of other formats the whole file is read. Null if it has none: it is
// damaged, as is told when it is read. Throws kFileSystem.
std::optional<ImageInfo> SizeOfImage(const std::string& path) try {
  constexpr size_t kBegin = size_t{64} << 10;
  const auto info = ProbeImage(ReadBeginMaybeGzip(path, kBegin));
  if (info && (info->format == ImageFormat::kJpeg || info->format == ImageFormat::kPng))
    return *info;
  const auto whole = ProbeImage(ReadImageFile(path));
  return whole ? std::optional(*whole) : std::nullopt;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::kData) throw;
  return std::nullopt;
}

struct YoloImage {
  std::string path, file = {};  // file: empty if there is none
  std::vector<YoloObject> objects = {};
};

void AddYoloImage(YoloImage image, const NumberedClasses& classes, std::vector<std::string>* lost,
                  BoxTable* table) {
  std::vector<NamedBox> boxes;
  std::vector<int64_t> numbers;
  for (const YoloObject& object : image.objects)
    numbers.push_back(
        classes.NumberOf(object.number, [&] { return format("{}:{}", image.file, object.line); }));
  std::optional<ImageInfo> size;
  if (!numbers.empty()) {
    try {
      size = SizeOfImage(image.path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kFileSystem) throw;
      // Readable a moment later, it would be learnt as an image without objects.
      table->unreadable.emplace(table->paths.size(), error.what());
    }
  }
  if (size) {
    for (const YoloObject& object : image.objects) {
      boxes.push_back({.name = {},
                       .left = object.left * size->width,
                       .top = object.top * size->height,
                       .right = object.right * size->width,
                       .bottom = object.bottom * size->height});
    }
  } else if (!numbers.empty()) {
    lost->push_back(image.path);
    numbers.clear();
  }
  AddImage(std::move(image.path), boxes, numbers, table);
}

// Folders that may hold the files of the images in `path`, for a look.
std::vector<fs::path> LabelFolders(const std::string& path) {
  std::vector<fs::path> folders = {fs::path(path) / "labels",
                                   WithLabelsForImages(fs::path(path).lexically_normal())};
  if (folders[1].empty())
    folders[1] = WithLabelsForImages(fs::absolute(fs::path(path) / "").lexically_normal());
  if (const auto found = FindAnnotations(path, ".txt")) folders.emplace_back(found->annotations);
  return folders;
}

// Whether all lines in the beginning of a file are of objects, nearly all in the image; none of an
// empty one.
std::optional<bool> HoldsYoloLines(const std::string& file) {
  constexpr size_t kBegin = 4096;
  std::string text = ReadBeginMaybeGzip(file, kBegin);
  if (text.size() == kBegin) text.resize(text.rfind('\n') + 1);  // without the line that is cut
  std::optional<bool> fits;
  ForEachLine(text, [&fits](std::string_view line, int64_t) {
    std::string why;
    const auto object = ParseYoloLine(line, &why);
    const auto is_share = [](double edge) { return edge > -0.5 && edge < 1.5; };
    const bool is_object = object && is_share(object->left) && is_share(object->top) &&
                           is_share(object->right) && is_share(object->bottom);
    fits = fits.value_or(true) && is_object;
  });
  return fits;
}

// By the first file with text in a folder and those below, of the first entries.
bool HoldsYoloFiles(const fs::path& folder) {
  constexpr int kMostEntries = 2000;
  std::error_code none;
  std::set<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         none);
  for (int i = 0; i < kMostEntries && !none && entry != end(entry); ++i, entry.increment(none)) {
    if (Lower(entry->path().extension().string()) == ".txt" && !IsNamesFile(entry->path()))
      files.insert(entry->path());
  }
  try {
    for (const fs::path& file : files) {
      if (const auto fits = HoldsYoloLines(file.string())) return *fits;
    }
  } catch (const Error&) {  // a file that cannot be read tells nothing
  }
  return false;
}

}  // namespace

std::unique_ptr<Source> NewYoloSource(const YoloParam& param) {
  YoloFiles files(param);
  std::vector<YoloImage> images;
  WrongFiles wrong;
  int64_t last = -1;
  std::string first_file, first_without;
  size_t without = 0;
  for (std::string& path : files.images()) {
    YoloImage image{.path = std::move(path)};
    image.file = files.FileOf(image.path);
    if (!image.file.empty()) wrong.Try([&] { image.objects = ReadYoloFile(image.file); });
    if (image.file.empty() && without++ == 0) first_without = image.path;
    if (first_file.empty()) first_file = image.file;
    for (const YoloObject& object : image.objects) last = std::max(last, object.number);
    images.push_back(std::move(image));
  }
  wrong.ThrowIfAny();
  if (first_file.empty()) {
    Throw(ErrorKind::kData,
          "no image in {} has a text file of its name{}: name the folder of these as annotations",
          param.path,
          param.annotations.empty() ? ", in a folder 'labels' beside 'images' or beside the image"
                                    : " in " + param.annotations);
  }
  const std::string names_file =
      FindNamesFile({files.folder(), fs::path(first_file).parent_path().string()});
  const NumberedClasses classes(param.classes, names_file, last, kMostYoloClasses);
  BoxTable table;
  std::vector<std::string> lost;
  for (YoloImage& image : images) AddYoloImage(std::move(image), classes, &lost, &table);
  table.classes = classes.names();
  if (without > 0) {
    // A few are backgrounds; most are likely a folder of labels that is not whole.
    const bool most = 2 * without > table.paths.size();
    (most ? table.warnings : table.notes)
        .push_back(format("{} of {} images have no label file, and are backgrounds (first: {})",
                          without, table.paths.size(), first_without));
  }
  if (!lost.empty()) {
    table.warnings.push_back(
        format("the size of {} is unknown, whose objects are dropped (first: {})",
               Counted(lost.size(), "image"), lost[0]));
  }
  return NewBoxFiles(std::move(table));
}

MXTRAIN_SOURCE(yolo_source, sources) {
  SourceKind kind = SourceKindOf<YoloParam, NewYoloSource>(
      "yolo", "images with boxes of objects, a text file each (YOLO)");
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    std::error_code none;
    if (!fs::is_directory(path, none)) return std::nullopt;
    for (const fs::path& folder : LabelFolders(path)) {
      if (!folder.empty() && HoldsYoloFiles(folder)) return Recognition{true, {{"path", path}}};
    }
    return std::nullopt;
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
