// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCocoBytes = size_t{4} << 30, kMostCocoNesting = 64;
constexpr double kMostCocoEdge = 1e9;

// Ids as text, so that 7 and "7" are the same.
struct CocoImage {
  std::string id, file_name;
};
struct CocoCategory {
  std::string id, name;
};
struct CocoObject {
  std::string id = {}, image = {}, category = {};
  double left = 0, top = 0, right = 0, bottom = 0, area = -1;
  bool crowd = false;
};

struct CocoTables {
  std::vector<CocoImage> images;
  std::vector<CocoCategory> categories;
  std::vector<CocoObject> objects;
};

struct CocoBounds {
  double left = std::numeric_limits<double>::infinity(), top = left, right = -left, bottom = -left;
};

// What is read of an image, an annotation or a category.
struct CocoItem {
  std::optional<std::string> id, file_name, name, image, category;
  std::vector<double> box;
  bool bad_box = false;  // something in it is not a number
  CocoBounds polygons;
  double area = -1;
  bool crowd = false;
};

// Takes the tables out of a file while it is parsed; nothing else of it is kept. `open_` is the
// brackets around the next value.
class CocoReader final : public FileJson::json_sax_t {
 public:
  CocoReader(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  CocoTables Read() {
    FileJson::sax_parse(text_, this);
    if (!seen_[kImages]) Lacks("images");
    if (!seen_[kAnnotations]) Lacks("annotations");
    if (!seen_[kCategories]) Lacks("categories");
    return std::move(tables_);
  }

  bool null() override { return Scalar({}); }
  bool boolean(bool value) override { return Scalar({.number = value ? 1.0 : 0.0}); }
  bool number_integer(int64_t value) override { return Whole(value); }
  bool number_unsigned(uint64_t value) override { return Whole(value); }
  bool number_float(double value, const std::string&) override {
    const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
    return whole ? Whole(static_cast<int64_t>(value)) : Scalar({.number = value});
  }
  bool string(std::string& value) override { return Scalar({.text = std::move(value)}); }
  bool binary(FileJson::binary_t&) override { return true; }  // not in text

  bool start_object(size_t) override { return Open('{'); }
  bool end_object() override {
    open_.pop_back();
    if (open_ == kTable && section_ != kOther) AddItem();
    return true;
  }
  bool start_array(size_t) override { return Open('['); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    if (open_ == "{") {
      section_ = name == "images"        ? kImages
                 : name == "annotations" ? kAnnotations
                 : name == "categories"  ? kCategories
                                         : kOther;
      if (section_ != kOther && std::exchange(seen_[section_], true))
        Throw(ErrorKind::kData, "{}: it has \"{}\" twice", file_, name);
    }
    if (open_ == kItem) field_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const FileJson::exception& error) override {
    const size_t at = std::min(position, text_.size());
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    Throw(ErrorKind::kData, "{}:{}: not JSON: {}", file_, line,
          Shortened(WithoutPrefix(error.what()), 200));
  }

 private:
  enum Section { kImages, kAnnotations, kCategories, kOther };
  static constexpr const char* kNames[] = {"images", "annotations", "categories"};
  // open_ in a table, in one of its images, annotations or categories, and in arrays of that.
  // Views, since they are compared for each number in the file.
  static constexpr std::string_view kTable = "{[", kItem = "{[{", kArray = "{[{[",
                                    kPolygon = "{[{[[";
  static constexpr std::string_view kBox = "bbox", kMask = "segmentation";

  // `text`: of text, and of whole numbers as ids.
  struct Value {
    std::optional<std::string> text = std::nullopt;
    double number = std::numeric_limits<double>::quiet_NaN();
  };

  // Of "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...".
  static std::string_view WithoutPrefix(std::string_view what) {
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    if (what.starts_with("parse error")) what.remove_prefix(what.find(": ") + 2);
    return what;
  }

  [[noreturn]] void Lacks(const char* name) const {
    Throw(ErrorKind::kData,
          "{}: it has no \"{}\"; expected images, annotations and categories, as in a file of COCO",
          file_, name);
  }

  // An image, ... for messages: by its id or, without, its number.
  std::string Place() const {
    static constexpr const char* kOne[] = {"image", "annotation", "category"};
    const size_t number = section_ == kImages        ? tables_.images.size()
                          : section_ == kAnnotations ? tables_.objects.size()
                                                     : tables_.categories.size();
    return item_.id
               ? format("{}: {} {}", file_, kOne[section_], Shortened(*item_.id))
               : format("{}: {} number {}, counted from 1,", file_, kOne[section_], number + 1);
  }

  // The file, its tables and what they hold are objects, arrays and objects.
  void CheckForm(char bracket) const {
    if (open_.size() >= kItem.size() || bracket == kItem[open_.size()]) return;
    if (open_.empty()) {
      Throw(ErrorKind::kData,
            "{}: expected a JSON object of images, annotations and categories, as in a file of "
            "COCO",
            file_);
    }
    if (section_ == kOther) return;
    Throw(ErrorKind::kData, "{}: \"{}\" is not an array of objects", file_, kNames[section_]);
  }

  bool Open(char bracket) {
    CheckForm(bracket);
    if (open_.size() == kMostCocoNesting)
      Throw(ErrorKind::kData, "{}: more than {} levels of brackets", file_, kMostCocoNesting);
    if (open_ == kTable && section_ != kOther) item_ = {}, field_.clear();
    open_ += bracket;
    coordinate_ = 0;
    return true;
  }

  template <typename Integer>
  bool Whole(Integer value) {
    Value whole{.number = static_cast<double>(value)};
    if (open_ == kItem) whole.text = std::to_string(value);  // not of each coordinate
    return Scalar(std::move(whole));
  }

  bool Scalar(Value value) {
    CheckForm(' ');
    if (section_ == kOther || open_.size() < 3) return true;
    if (open_ == kItem) {
      SetField(std::move(value));
    } else if (open_ == kArray && field_ == kBox) {
      item_.bad_box = item_.bad_box || std::isnan(value.number);
      if (item_.box.size() <= 4) item_.box.push_back(value.number);
    } else if ((open_ == kArray || open_ == kPolygon) && field_ == kMask) {
      AddCoordinate(value.number);
    }
    return true;
  }

  void SetField(Value value) {
    if (field_ == "id") item_.id = std::move(value.text);
    if (field_ == "file_name") item_.file_name = std::move(value.text);
    if (field_ == "name") item_.name = std::move(value.text);
    if (field_ == "image_id") item_.image = std::move(value.text);
    if (field_ == "category_id") item_.category = std::move(value.text);
    if (field_ == "area" && value.number >= 0) item_.area = value.number;
    if (field_ == "iscrowd") item_.crowd = value.number > 0;
  }

  void AddCoordinate(double value) {
    CocoBounds& bounds = item_.polygons;
    double& least = coordinate_ == 0 ? bounds.left : bounds.top;
    double& most = coordinate_ == 0 ? bounds.right : bounds.bottom;
    least = std::min(least, value);
    most = std::max(most, value);
    coordinate_ = 1 - coordinate_;
  }

  std::string Required(std::optional<std::string>* value, const char* field) const {
    if (*value && !(*value)->empty()) return *std::move(*value);
    Throw(ErrorKind::kData, "{} has no \"{}\"", Place(), field);
  }

  void AddItem() {
    if (section_ == kAnnotations) return AddObject();
    // The name first: messages have the id.
    const bool is_image = section_ == kImages;
    std::string name =
        is_image ? Required(&item_.file_name, "file_name") : Required(&item_.name, "name");
    if (is_image) CheckPath(name, [this] { return Place(); });
    std::string id = Required(&item_.id, "id");
    if (is_image) {
      tables_.images.push_back({std::move(id), std::move(name)});
    } else {
      tables_.categories.push_back({std::move(id), std::move(name)});
    }
  }

  void AddObject() {
    CocoObject object{.area = item_.area, .crowd = item_.crowd};
    object.image = Required(&item_.image, "image_id");
    object.category = Required(&item_.category, "category_id");
    const std::vector<double>& box = item_.box;
    if (item_.bad_box || (!box.empty() && box.size() != 4)) {
      Throw(ErrorKind::kData, "{}: its \"bbox\" is not four numbers [x, y, width, height]",
            Place());
    }
    if (!box.empty()) {
      object.left = box[0], object.top = box[1];
      object.right = box[0] + box[2], object.bottom = box[1] + box[3];
    } else if (const CocoBounds& bounds = item_.polygons;
               bounds.right >= bounds.left && bounds.bottom >= bounds.top) {
      object.left = bounds.left, object.top = bounds.top;
      object.right = bounds.right, object.bottom = bounds.bottom;
    } else {
      Throw(ErrorKind::kData, "{} has neither a \"bbox\" nor polygons", Place());
    }
    for (const double edge : {object.left, object.top, object.right, object.bottom}) {
      if (!(std::abs(edge) < kMostCocoEdge))
        Throw(ErrorKind::kData, "{}: {} is too large for the edge of a box in pixels", Place(),
              edge);
    }
    object.id = item_.id ? *std::move(item_.id)
                         : format("number {}, counted from 1,", tables_.objects.size() + 1);
    tables_.objects.push_back(std::move(object));
  }

  const std::string& file_;
  const std::string& text_;
  std::string open_, field_;
  Section section_ = kOther;
  bool seen_[3] = {};
  CocoItem item_;
  int coordinate_ = 0;  // of a polygon: 0 if the next is x
  CocoTables tables_;
};

// Numbers by their value, before text.
bool IdIsLess(const CocoCategory& a, const CocoCategory& b) {
  const auto number = [](const std::string& id) {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(id.data(), id.data() + id.size(), value);
    const bool whole = status == std::errc() && end == id.data() + id.size();
    return whole ? value : std::numeric_limits<int64_t>::max();
  };
  return std::pair(number(a.id), a.id) < std::pair(number(b.id), b.id);
}

// The class of each category id, -1 if it is not one of `given`; and their names.
struct CocoClasses {
  std::unordered_map<std::string, std::pair<int64_t, std::string>> of_id;  // number, name
  std::vector<std::string> names;
};

CocoClasses NumberCategories(std::vector<CocoCategory> categories,
                             const std::vector<std::string>& given, const std::string& file) {
  std::ranges::sort(categories, IdIsLess);
  CocoClasses classes{{}, given};
  if (given.empty()) {
    for (const CocoCategory& category : categories) classes.names.push_back(category.name);
  }
  std::unordered_map<std::string, int64_t> number_of;
  for (size_t k = 0; k < classes.names.size(); ++k)
    number_of.emplace(classes.names[k], static_cast<int64_t>(k));
  std::unordered_map<std::string, std::string> id_of;
  for (CocoCategory& category : categories) {
    if (const auto [known, added] = id_of.emplace(category.name, category.id); !added) {
      Throw(ErrorKind::kData, "{}: two categories have the name '{}', of the ids {} and {}", file,
            Shortened(category.name), Shortened(known->second), Shortened(category.id));
    }
    const auto found = number_of.find(category.name);
    const int64_t number = found == number_of.end() ? -1 : found->second;
    if (!classes.of_id.emplace(category.id, std::pair(number, category.name)).second) {
      Throw(ErrorKind::kData, "{}: two categories have the id {}", file, Shortened(category.id));
    }
  }
  return classes;
}

// Where the images are, and a warning if that is not known.
std::string RootOfCoco(const std::string& file, const std::string& first_image,
                       std::vector<std::string>* warnings) {
  constexpr std::string_view kPrefix = "instances_";
  const fs::path folder = fs::path(file).parent_path(), above = folder / "..";
  std::string stem = fs::path(file).stem().string();
  if (stem.starts_with(kPrefix)) stem.erase(0, kPrefix.size());
  std::vector<std::string> tried;
  for (const fs::path& root : {folder, folder / "images", above / "images", above / stem,
                               above / "images" / stem, folder / stem}) {
    std::error_code none;
    if (fs::exists((root / first_image).lexically_normal(), none)) return root.string();
    tried.push_back((root / "").lexically_normal().string());
  }
  warnings->push_back(format("{}: the image {} is not in {}; name the folder of the images as root",
                             file, Shortened(first_image), FirstOf(std::move(tried), 10)));
  return folder.string();
}

// The objects of image i are order[begins[i]] up to order[begins[i + 1]], in the file's order.
struct ObjectsOfImages {
  std::vector<size_t> order, begins;
};

ObjectsOfImages GroupObjects(const CocoTables& tables, const std::string& file) {
  std::unordered_map<std::string_view, size_t> index_of;
  for (const CocoImage& image : tables.images) {
    if (!index_of.emplace(image.id, index_of.size()).second)
      Throw(ErrorKind::kData, "{}: two images have the id {}", file, Shortened(image.id));
  }
  ObjectsOfImages groups;
  groups.begins.assign(tables.images.size() + 1, 0);
  std::vector<size_t> image_of;
  for (const CocoObject& object : tables.objects) {
    const auto found = index_of.find(object.image);
    if (found == index_of.end()) {
      Throw(ErrorKind::kData, "{}: annotation {} is of the image {}, which is not in the file",
            file, Shortened(object.id), Shortened(object.image));
    }
    image_of.push_back(found->second);
    ++groups.begins[found->second + 1];
  }
  for (size_t i = 1; i < groups.begins.size(); ++i) groups.begins[i] += groups.begins[i - 1];
  std::vector<size_t> next = groups.begins;
  groups.order.resize(tables.objects.size());
  for (size_t i = 0; i < image_of.size(); ++i) groups.order[next[image_of[i]]++] = i;
  return groups;
}

int64_t ClassOfObject(const CocoObject& object, const CocoClasses& classes,
                      const std::string& file) {
  const auto found = classes.of_id.find(object.category);
  if (found == classes.of_id.end()) {
    Throw(ErrorKind::kData, "{}: annotation {} is of the category {}, which is not in the file",
          file, Shortened(object.id), Shortened(object.category));
  }
  const auto& [number, name] = found->second;
  if (number < 0) {
    Throw(ErrorKind::kData,
          "{}: annotation {}: the category '{}' is not one of the {} classes ({}){}", file,
          Shortened(object.id), Shortened(name), classes.names.size(),
          Shortened(FirstOf(classes.names, 20), 500), WhyNotAmong(name, classes.names));
  }
  return number;
}

// Whether the beginning of a JSON file has a key.
bool HasKey(std::string_view text, std::string_view name) {
  const std::string quoted = format("\"{}\"", name);
  for (size_t at = 0; (at = text.find(quoted, at)) != std::string_view::npos;) {
    at += quoted.size();
    const size_t next = text.find_first_not_of(" \t\r\n", at);
    if (next != std::string_view::npos && text[next] == ':') return true;
  }
  return false;
}

bool BeginsAsCoco(const std::string& file) {
  constexpr size_t kBegin = size_t{64} << 10;
  std::string text;
  try {
    text = PlainText(ReadBeginMaybeGzip(file, kBegin), file);
  } catch (const Error&) {  // what cannot be read is not of this kind
    return false;
  }
  if (!Trim(text, " \t\r\n").starts_with('{')) return false;
  const auto has = [&text](const char* name) { return HasKey(text, name); };
  return (has("images") && has("file_name")) ||
         (has("annotations") && has("image_id") && has("category_id")) ||
         (has("categories") && (has("images") || has("annotations")));
}

}  // namespace

std::unique_ptr<Source> NewCocoSource(const CocoParam& param) {
  const std::string& file = param.path;
  CocoTables tables;
  {
    const std::string text =
        PlainText(ReadMaybeGzip(file, kMostCocoBytes, Readable::kFileOrPipe), file);
    tables = CocoReader(file, text).Read();
  }
  if (tables.images.empty()) Throw(ErrorKind::kData, "{}: it names no images", file);
  const CocoClasses classes = NumberCategories(std::move(tables.categories), param.classes, file);
  const ObjectsOfImages groups = GroupObjects(tables, file);
  BoxTable table;
  table.columns = kBoxColumns + 1;
  table.classes = classes.names;
  const fs::path root = param.root.empty()
                            ? RootOfCoco(file, tables.images[0].file_name, &table.warnings)
                            : param.root;
  for (size_t i = 0; i < tables.images.size(); ++i) {
    for (size_t k = groups.begins[i]; k < groups.begins[i + 1]; ++k) {
      const CocoObject& object = tables.objects[groups.order[k]];
      const auto label = static_cast<double>(ClassOfObject(object, classes, file));
      for (const double value :
           {label, object.left, object.top, object.right, object.bottom,
            static_cast<double>(object.crowd ? kCrowdBox : kPlainBox), object.area})
        table.rows.push_back(static_cast<float>(value));
    }
    table.ends.push_back(groups.begins[i + 1]);
    table.paths.push_back((root / tables.images[i].file_name).lexically_normal().string());
  }
  return NewBoxFiles(std::move(table));
}

MXTRAIN_SOURCE(coco_source, sources) {
  SourceKind kind = SourceKindOf<CocoParam, NewCocoSource>(
      "coco", "images with boxes of objects in one JSON file (COCO)");
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    std::error_code none;
    const fs::path of_folder = fs::path(path) / "_annotations.coco.json";  // Roboflow's
    if (fs::is_regular_file(of_folder, none))
      return Recognition{true, {{"path", of_folder.string()}}};
    const bool is_json = Lower(fs::path(path).extension().string()) == ".json";
    if (!is_json || !fs::is_regular_file(path, none) || !BeginsAsCoco(path)) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
