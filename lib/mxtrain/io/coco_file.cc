// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/list_line.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostCocoBytes = size_t{4} << 30, kMostCocoNesting = 64;
constexpr double kMostCocoEdge = 1e9;

struct CocoBounds {
  double left = std::numeric_limits<double>::infinity(), top = left, right = -left, bottom = -left;
};

// What is read of an image, an annotation or a category.
struct CocoItem {
  std::optional<std::string> id, file_name, name, image, category;
  std::vector<double> box;
  bool bad_box = false;  // something in it is not a number
  CocoBounds polygons;
  double area = -1, width = 0, height = 0;
  std::optional<bool> crowd = false;  // none: neither a number nor true or false
};

// Takes the tables out of a file while it is parsed; nothing else of it is kept. `open_` is the
// brackets around the next value.
class CocoReader final : public FileJson::json_sax_t {
 public:
  CocoReader(const std::string& file, const std::string& text, CocoContent content)
      : file_(file), text_(text), content_(content) {}

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
    if (InSegmentation()) segmentation_.Key(Below(), name);
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
  static constexpr std::string_view kBox = "bbox", kSegmentation = "segmentation";

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
    if (InSegmentation()) segmentation_.Open(Below(), bracket);
    open_ += bracket;
    coordinate_ = 0;
    return true;
  }

  // The value of an annotation's "segmentation", or something in it, is next.
  bool InSegmentation() const {
    return content_ == CocoContent::kSegmentations && section_ == kAnnotations &&
           open_.size() >= kItem.size() && field_ == kSegmentation;
  }
  std::string_view Below() const { return std::string_view(open_).substr(kItem.size()); }

  template <typename Integer>
  bool Whole(Integer value) {
    Value whole{.number = static_cast<double>(value)};
    if (open_ == kItem) whole.text = std::to_string(value);  // not of each coordinate
    return Scalar(std::move(whole));
  }

  bool Scalar(Value value) {
    CheckForm(' ');
    if (section_ == kOther || open_.size() < 3) return true;
    if (InSegmentation()) {
      value.text&& std::isnan(value.number) ? segmentation_.Text(Below(), *value.text)
                                            : segmentation_.Number(Below(), value.number);
    } else if (open_ == kItem) {
      SetField(std::move(value));
    } else if (open_ == kArray && field_ == kBox) {
      item_.bad_box = item_.bad_box || std::isnan(value.number);
      if (item_.box.size() <= 4) item_.box.push_back(value.number);
    } else if ((open_ == kArray || open_ == kPolygon) && field_ == kSegmentation) {
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
    if (field_ == "width" && value.number > 0) item_.width = value.number;
    if (field_ == "height" && value.number > 0) item_.height = value.number;
    if (field_ == "iscrowd" && value.text && std::isnan(value.number)) item_.crowd.reset();
    if (field_ == "iscrowd" && !std::isnan(value.number)) item_.crowd = value.number > 0;
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
      tables_.images.push_back({std::move(id), std::move(name), item_.width, item_.height});
    } else {
      tables_.categories.push_back({std::move(id), std::move(name)});
    }
  }

  void AddObject() {
    if (!item_.crowd) Throw(ErrorKind::kData, "{}: its \"iscrowd\" is neither 0 nor 1", Place());
    CocoObject object{.area = item_.area, .crowd = *item_.crowd};
    object.image = Required(&item_.image, "image_id");
    object.category = Required(&item_.category, "category_id");
    if (content_ == CocoContent::kBoxes) {
      SetBox(&object);
    } else {
      object.segmentation = segmentation_.Finish(&tables_.segmentations);
    }
    object.id = item_.id ? *std::move(item_.id)
                         : format("number {}, counted from 1,", tables_.objects.size() + 1);
    tables_.objects.push_back(std::move(object));
  }

  void SetBox(CocoObject* object) const {
    const std::vector<double>& box = item_.box;
    if (item_.bad_box || (!box.empty() && box.size() != 4)) {
      Throw(ErrorKind::kData, "{}: its \"bbox\" is not four numbers [x, y, width, height]",
            Place());
    }
    if (!box.empty()) {
      object->left = box[0], object->top = box[1];
      object->right = box[0] + box[2], object->bottom = box[1] + box[3];
    } else if (const CocoBounds& bounds = item_.polygons;
               bounds.right >= bounds.left && bounds.bottom >= bounds.top) {
      object->left = bounds.left, object->top = bounds.top;
      object->right = bounds.right, object->bottom = bounds.bottom;
    } else {
      Throw(ErrorKind::kData, "{} has neither a \"bbox\" nor polygons", Place());
    }
    for (const double edge : {object->left, object->top, object->right, object->bottom}) {
      if (!(std::abs(edge) < kMostCocoEdge))
        Throw(ErrorKind::kData, "{}: {} is too large for the edge of a box in pixels", Place(),
              edge);
    }
  }

  const std::string& file_;
  const std::string& text_;
  const CocoContent content_;
  std::string open_, field_;
  Section section_ = kOther;
  bool seen_[3] = {};
  CocoItem item_;
  int coordinate_ = 0;  // of a polygon: 0 if the next is x
  CocoSegmentationReader segmentation_;
  CocoTables tables_;
};

}  // namespace

CocoTables ReadCocoFile(const std::string& file, CocoContent content) {
  const std::string text =
      PlainText(ReadMaybeGzip(file, kMostCocoBytes, Readable::kFileOrPipe), file);
  return CocoReader(file, text, content).Read();
}

}  // namespace mxtrain::io
