// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/record_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/class_names.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/image_record.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/numbered_classes.h"
#include "mxtrain/io/record_file.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecordsTried = 100;  // to tell the kind of labels
// Unnamed classes: more only if there are as many records for each.
constexpr int64_t kFewRecordClasses = 10'000, kRecordClassesPerRecord = 16;
constexpr int64_t kMostRecordClasses = 1'000'000;

bool IsRecordFile(const fs::path& path) {
  std::error_code none;
  return Lower(path.extension().string()) == ".rec" && fs::is_regular_file(path, none);
}

std::vector<std::string> RecordFilesOf(const std::string& path) {
  std::error_code broken;
  if (!fs::is_directory(path, broken)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, broken)) {
    if (IsRecordFile(entry.path())) files.push_back(entry.path().string());
  }
  if (broken) Throw(ErrorKind::kFileSystem, "cannot read {}: {}", path, broken.message());
  std::ranges::sort(files);
  std::map<Split, std::string> parts;
  for (const std::string& file : files)
    parts.emplace(SplitOf(fs::path(file).stem().string()), file);
  parts.erase(Split::kNone);
  if (parts.size() > 1) {
    Throw(ErrorKind::kConfig, "{} has files of several parts ({}, {}); name one of them", path,
          parts.begin()->second, parts.rbegin()->second);
  }
  if (files.empty()) Throw(ErrorKind::kFileSystem, "{} has no .rec file in it", path);
  return files;
}

// The list of the classes' names beside a file; "" if there is none.
std::string NamesBesideRecords(const std::string& file) {
  std::error_code none;
  for (const fs::path& names :
       {fs::path(BesideRecords(file, ".classes")), fs::path(file).parent_path() / "classes.txt"}) {
    if (fs::is_regular_file(names, none)) return names.string();
  }
  return "";
}

// The records of all files, numbered through.
class RecordSet {
 public:
  explicit RecordSet(const std::string& path) {
    for (const std::string& file : RecordFilesOf(path)) {
      files_.emplace_back(file);
      ends_.push_back(size() + files_.back().size());
    }
    if (size() == 0) Throw(ErrorKind::kData, "{} holds no records", path);
  }

  int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  std::string Place(int64_t index) const {
    const auto [file, number] = At(index);
    return file->Place(number);
  }
  std::string Name(int64_t index) const {
    const auto [file, number] = At(index);
    return format("{}[{}]", file->path(), number);
  }
  void Read(int64_t index, std::string* bytes) const {
    const auto [file, number] = At(index);
    file->Read(number, bytes);
  }
  // With at least so many bytes of the image, if it has them.
  ImageRecord ReadBegin(int64_t index, size_t image_bytes, std::string* bytes) const {
    const auto [file, number] = At(index);
    file->ReadBegin(number, kImageRecordHeader + image_bytes, bytes);
    const uint64_t wanted = BytesBeforeImage(*bytes) + image_bytes;
    if (bytes->size() < wanted) file->ReadBegin(number, static_cast<size_t>(wanted), bytes);
    return ParseImageRecord(*bytes, [&] { return Place(index); });
  }

  // The same of all files.
  std::string NamesFile() const {
    const std::string first = NamesBesideRecords(files_[0].path());
    for (const RecordReader& file : files_) {
      const std::string names = NamesBesideRecords(file.path());
      if (names == first ||
          (!names.empty() && !first.empty() && ReadClassNames(names) == ReadClassNames(first)))
        continue;
      Throw(ErrorKind::kData, "the classes of {} ({}) are not those of {} ({})", file.path(),
            names.empty() ? "without names" : names, files_[0].path(),
            first.empty() ? "without names" : first);
    }
    return first;
  }

 private:
  struct Position {
    const RecordReader* file;
    int64_t number;
  };
  Position At(int64_t index) const {
    const auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {&files_[file], index - (file == 0 ? 0 : ends_[file - 1])};
  }

  std::vector<RecordReader> files_;
  std::vector<int64_t> ends_;  // of each file: its records and those before it
};

bool IsWholeFrom(float value, float least) {
  return value >= least && value < 0x1p24f && value == std::floor(value);
}

// Whether labels have the form of boxes: sizes of the header and of an object, and whole objects.
bool HaveFormOfBoxes(std::span<const float> labels) {
  if (labels.size() < 2 || !IsWholeFrom(labels[0], 2) || !IsWholeFrom(labels[1], 5)) return false;
  const auto header = static_cast<size_t>(labels[0]), object = static_cast<size_t>(labels[1]);
  return header <= labels.size() && (labels.size() - header) % object == 0;
}

int64_t ClassOfRecord(std::span<const float> labels, const std::string& place) {
  if (labels.size() != 1) {
    Throw(ErrorKind::kData,
          "{}: {}{}; expected one, a class: several plain numbers are not supported", place,
          Counted(labels.size(), "label"),
          HaveFormOfBoxes(labels) ? ", which look like boxes (label_kind: boxes)" : "");
  }
  if (IsWholeFrom(labels[0], 0)) return static_cast<int64_t>(labels[0]);
  Throw(ErrorKind::kData, "{}: the label {} is no class: these are whole numbers from 0", place,
        labels[0]);
}

// An object of a label; edges are shares of the image's size.
struct RecordObject {
  int64_t number = 0;
  NamedBox box;
};

void CheckShare(float share, size_t object, const std::string& place) {
  // Boxes may reach beyond the image a little; a whole image beyond it they are something else.
  if (share >= -1 && share <= 2) return;
  Throw(ErrorKind::kData,
        "{}: object {}: {} is not a share of the image's size, which goes from 0 to 1; are these "
        "pixels?",
        place, object, share);
}

BoxUse UseOfObject(float number) {
  if (number == 0) return kPlainBox;
  return number == static_cast<float>(kCrowdBox) ? kCrowdBox : kDifficultBox;
}

std::vector<RecordObject> ObjectsOfRecord(std::span<const float> labels, const std::string& place) {
  if (!HaveFormOfBoxes(labels)) {
    Throw(ErrorKind::kData,
          "{}: {}, which are no boxes: expected the sizes A >= 2 of a header and B >= 5 of an "
          "object, A - 2 more numbers of the header, and B for each object",
          place, Counted(labels.size(), "label"));
  }
  const auto width = static_cast<size_t>(labels[1]);
  std::vector<RecordObject> objects;
  for (size_t at = static_cast<size_t>(labels[0]), i = 0; at < labels.size(); at += width, ++i) {
    const std::span<const float> object = labels.subspan(at, width);
    if (object[0] == -1) continue;
    if (!IsWholeFrom(object[0], 0)) {
      Throw(ErrorKind::kData, "{}: object {}: the class {} is no whole number from 0", place, i,
            object[0]);
    }
    for (const float share : object.subspan(1, 4)) CheckShare(share, i, place);
    objects.push_back({static_cast<int64_t>(object[0]),
                       {.name = {},
                        .left = object[1],
                        .top = object[2],
                        .right = object[3],
                        .bottom = object[4],
                        .use = UseOfObject(width > 5 ? object[5] : 0)}});
  }
  return objects;
}

// The size of a record's image as it is shown, read from as little of it as suffices: the headers
// of JPEG and PNG are at the beginning. Nothing if it has none.
std::optional<ImageInfo> SizeInRecord(const RecordSet& records, int64_t index) try {
  std::string bytes;
  for (const size_t begin : {size_t{4} << 10, size_t{64} << 10}) {
    const auto info = ProbeImage(records.ReadBegin(index, begin, &bytes).image);
    if (info && (info->format == ImageFormat::kJpeg || info->format == ImageFormat::kPng))
      return *info;
  }
  records.Read(index, &bytes);
  const auto info = ProbeImage(ParseImageRecord(bytes, [&] { return records.Place(index); }).image);
  return info ? std::optional(*info) : std::nullopt;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::kData) throw;
  return std::nullopt;  // a damaged record, as which it is told when it is read
}

// The labels of all records: classes, or boxes.
struct RecordLabels {
  bool boxes = false;
  std::vector<int64_t> numbers;                    // without boxes: as in the file
  std::vector<std::vector<RecordObject>> objects;  // with boxes
  int64_t last = -1;                               // the largest class number

  int64_t MostUnnamed() const {
    return boxes ? kFewRecordClasses
                 : std::clamp(kRecordClassesPerRecord * std::ssize(numbers), kFewRecordClasses,
                              kMostRecordClasses);
  }
};

bool FirstRecordsHaveBoxes(const RecordSet& records) {
  std::string bytes;
  for (int64_t i = 0; i < std::min(records.size(), kRecordsTried); ++i) {
    if (!HaveFormOfBoxes(records.ReadBegin(i, 0, &bytes).labels)) return false;
  }
  return true;
}

RecordLabels ReadRecordLabels(const RecordSet& records, int label_kind) {
  RecordLabels labels;
  labels.boxes = label_kind == RecordParam::kBoxes ||
                 (label_kind == RecordParam::kAuto && FirstRecordsHaveBoxes(records));
  std::string bytes;
  for (int64_t i = 0; i < records.size(); ++i) {
    const ImageRecord record = records.ReadBegin(i, 0, &bytes);
    if (!labels.boxes) {
      labels.numbers.push_back(ClassOfRecord(record.labels, records.Place(i)));
      labels.last = std::max(labels.last, labels.numbers.back());
      continue;
    }
    labels.objects.push_back(ObjectsOfRecord(record.labels, records.Place(i)));
    for (const RecordObject& object : labels.objects.back())
      labels.last = std::max(labels.last, object.number);
  }
  return labels;
}

class RecordSource final : public Source {
 public:
  explicit RecordSource(const RecordParam& param) : records_(param.path) {
    if (!param.labels) return;
    const RecordLabels labels = ReadRecordLabels(records_, param.label_kind);
    const NumberedClasses classes(param.classes, records_.NamesFile(), labels.last,
                                  labels.MostUnnamed());
    table_.classes = classes.names();
    if (labels.boxes) {
      AddBoxes(labels, classes);
    } else {
      AddClasses(labels, classes);
    }
  }

  int64_t size() const override { return records_.size(); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    if (!label_fields_.empty()) sample->labels[0].values = LabelOf(index, 0, sample);
    std::string& bytes = sample->data[0].encoded;
    records_.Read(index, &bytes);
    const ImageRecord record = ParseImageRecord(bytes, [&] { return records_.Place(index); });
    bytes.erase(0, bytes.size() - record.image.size());
  }
  std::span<const float> LabelOf(int64_t index, size_t, Sample*) const override {
    const auto i = static_cast<size_t>(index), columns = static_cast<size_t>(table_.columns);
    const size_t first = i == 0 ? 0 : table_.ends[i - 1];
    return std::span(table_.rows).subspan(first * columns, (table_.ends[i] - first) * columns);
  }
  std::string Name(int64_t index) const override { return records_.Name(index); }
  std::optional<int> ClassOf(int64_t index) const override {
    if (label_fields_.empty() || label_fields_[0].kind == FieldKind::kBoxes) return std::nullopt;
    return static_cast<int>(table_.rows[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return table_.classes; }

 private:
  void AddClasses(const RecordLabels& labels, const NumberedClasses& classes) {
    table_.columns = 1;
    for (int64_t i = 0; i < size(); ++i) {
      const int64_t number = labels.numbers[static_cast<size_t>(i)];
      table_.rows.push_back(
          static_cast<float>(classes.NumberOf(number, [&] { return records_.Place(i); })));
      table_.ends.push_back(table_.rows.size());
    }
    label_fields_ = {{"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
  }

  void AddBoxes(const RecordLabels& labels, const NumberedClasses& classes) {
    size_t most = 1;
    std::vector<std::string> lost;
    for (int64_t i = 0; i < size(); ++i) {
      const std::vector<RecordObject>& objects = labels.objects[static_cast<size_t>(i)];
      const auto boxes = BoxesInPixels(i, objects);
      if (!boxes) lost.push_back(Name(i));
      std::vector<int64_t> numbers;
      for (const RecordObject& object : objects)
        numbers.push_back(classes.NumberOf(object.number, [&] { return records_.Place(i); }));
      AddImage("", boxes.value_or(std::vector<NamedBox>()), numbers, &table_);
      most = std::max(most, objects.size());
    }
    if (!lost.empty()) {
      warnings_.push_back(format("the size of {} is unknown, whose objects are dropped (first: {})",
                                 Counted(lost.size(), "image"), lost[0]));
    }
    label_fields_ = {
        {"label", FieldKind::kBoxes, TShape{static_cast<int64_t>(most), table_.columns}}};
  }

  // Nothing if the size of the image is unknown.
  std::optional<std::vector<NamedBox>> BoxesInPixels(
      int64_t index, const std::vector<RecordObject>& objects) const {
    std::vector<NamedBox> boxes;
    if (objects.empty()) return boxes;
    const auto shown = SizeInRecord(records_, index);
    if (!shown) return std::nullopt;
    for (const RecordObject& object : objects) {
      NamedBox& box = boxes.emplace_back(object.box);
      box.left *= shown->width, box.right *= shown->width;
      box.top *= shown->height, box.bottom *= shown->height;
    }
    return boxes;
  }

  const RecordSet records_;
  BoxTable table_;  // of classes: a row of one number for each record
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}}, label_fields_;
};

// Whether a folder has .rec files in it, and nothing but what may lie beside them.
bool IsRecordFolder(const std::string& path) {
  static const std::set<std::string> kBeside = {".idx", ".lst", ".sums", ".classes", ".txt"};
  std::error_code none;
  bool found = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, none)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    if (IsRecordFile(entry.path())) {
      found = true;
    } else if (entry.is_directory(none) ||
               !kBeside.contains(Lower(entry.path().extension().string()))) {
      return false;
    }
  }
  return found;
}

std::unique_ptr<Source> NewUnlabelledRecords(const Kwargs& kwargs) {
  RecordParam param;
  param.Init(kwargs, "record");
  param.labels = false;
  return NewRecordSource(param);
}

}  // namespace

std::unique_ptr<Source> NewRecordSource(const RecordParam& param) {
  return std::make_unique<RecordSource>(param);
}

MXTRAIN_SOURCE(record_source, sources) {
  SourceKind kind = SourceKindOf<RecordParam, NewRecordSource>(
      "record", "images with classes or boxes in RecordIO files (MXNet's im2rec, mxtrain pack)");
  kind.make_unlabelled = NewUnlabelledRecords;
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (!IsRecordFile(path) && !IsRecordFolder(path)) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
