// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/box_csv_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/first_record.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/csv_sheet.h"
#include "mxtrain/io/internal/header_line.h"
#include "mxtrain/io/internal/table_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/list_line.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlanksOfCells = " \t\r\n";

// The names that a column may have, in lower case; the first that there is counts.
using ColumnNames = std::array<std::string_view, 6>;
constexpr ColumnNames kNamesOfImage = {"image",      "filename", "file",
                                       "image_path", "path",     "imageid"};
constexpr ColumnNames kNamesOfClass = {"class",     "label",    "class_name",
                                       "labelname", "category", "name"};
using FourColumns = std::array<ColumnNames, 4>;
constexpr FourColumns kNamesOfEdges = {{{"xmin", "x1", "left"},
                                        {"ymin", "y1", "top"},
                                        {"xmax", "x2", "right"},
                                        {"ymax", "y2", "bottom"}}};
constexpr FourColumns kNamesOfSizes = {{{"x"}, {"y"}, {"w", "width"}, {"h", "height"}}};

std::optional<size_t> ColumnOf(const ColumnNames& names, const std::vector<std::string>& header) {
  for (const std::string_view name : names) {
    if (name.empty()) break;
    const auto found =
        std::ranges::find_if(header, [name](const auto& cell) { return Lower(cell) == name; });
    if (found != header.end()) return static_cast<size_t>(found - header.begin());
  }
  return std::nullopt;
}

std::optional<std::array<size_t, 4>> ColumnsOf(const FourColumns& names,
                                               const std::vector<std::string>& header) {
  std::array<size_t, 4> columns{};
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto found = ColumnOf(names[i], header);
    if (!found) return std::nullopt;
    columns[i] = *found;
  }
  return columns;
}

struct BoxColumns {
  size_t image = 0, label = 5;
  std::array<size_t, 4> box = {1, 2, 3, 4};
  bool sizes = false;        // of the box: a corner and a size
  bool adds_ending = false;  // images are ids
  std::optional<size_t> difficult, crowd;
};

BoxColumns NameBoxColumns(const Sheet& sheet, int64_t line) {
  const auto lacks = [&](const char* what, const char* names) {
    Throw(ErrorKind::kData, "{}:{}: no column {}: expected one named {}; the columns are {}",
          sheet.file, line, what, names, sheet.Names(20));
  };
  BoxColumns columns;
  const auto image = ColumnOf(kNamesOfImage, sheet.header);
  const auto label = ColumnOf(kNamesOfClass, sheet.header);
  auto box = ColumnsOf(kNamesOfEdges, sheet.header);
  if (!box) {
    box = ColumnsOf(kNamesOfSizes, sheet.header);
    columns.sizes = true;
  }
  if (!image) lacks("of images", "image, file, filename, path, image_path or ImageID");
  if (!label) lacks("of classes", "class, label, name, class_name, category or LabelName");
  if (!box) {
    Throw(
        ErrorKind::kData,
        "{}:{}: no columns of boxes: expected xmin, ymin, xmax, ymax, or x1, y1, x2, y2, or left, "
        "top, right, bottom, or x, y, w, h; the columns are {}",
        sheet.file, line, sheet.Names(20));
  }
  columns.image = *image;
  columns.label = *label;
  columns.box = *box;
  columns.adds_ending = Lower(sheet.header[*image]) == "imageid";
  columns.difficult = ColumnOf({"difficult"}, sheet.header);
  columns.crowd = ColumnOf({"iscrowd"}, sheet.header);
  for (const size_t column :
       {columns.image, columns.label, (*box)[0], (*box)[1], (*box)[2], (*box)[3]}) {
    const std::string name = Lower(sheet.header[column]);
    if (std::ranges::count_if(sheet.header, [&](const auto& cell) { return Lower(cell) == name; }) >
        1) {
      Throw(ErrorKind::kData, "{}:{}: there are two columns '{}'", sheet.file, line,
            Shortened(name));
    }
  }
  return columns;
}

// The images of a table, in the order in which they come first, with the objects of each.
class BoxCsvReader {
 public:
  explicit BoxCsvReader(const BoxCsvParam& param)
      : root_(param.root.empty() ? fs::path(param.path).parent_path() : fs::path(param.root)) {
    TableText text(param.path, "auto");
    sheet_.file = param.path;
    sheet_.delimiter = text.delimiter();
    text.ForEachRecord([this](const std::vector<std::string_view>& cells, int64_t line) {
      if (sheet_.columns == 0) {
        if (TakeHeader(cells, line)) return;
      } else if (cells.size() != sheet_.columns) {
        Throw(ErrorKind::kData, "{}:{}: {}, but the lines before have {}", sheet_.file, line,
              Counted(cells.size(), "column"), sheet_.columns);
      }
      AddLine(cells, line);
    });
    if (images_.empty())
      Throw(ErrorKind::kData, "{} holds no line with an image and a box", sheet_.file);
    if (farthest_ > 0 && farthest_ <= 1) {
      Throw(ErrorKind::kData,
            "{}: no box goes beyond 1, so they look like shares of the image's size, but pixels "
            "are expected: multiply x by the width and y by the height of the image",
            sheet_.file);
    }
  }

  BoxTable Finish(const std::vector<std::string>& given) {
    std::vector<std::string> names;
    std::vector<int64_t> lines;
    for (const ImageOfTable& image : images_) {
      for (size_t i = 0; i < image.objects.size(); ++i) {
        names.push_back(image.objects[i].name);
        lines.push_back(image.lines[i]);
      }
    }
    BoxTable table;
    NameNumbers numbered =
        NumberNames(names, given, [&](size_t i) { return sheet_.Place(lines[i], columns_.label); });
    table.classes = std::move(numbered.classes);
    auto next = numbered.numbers.begin();
    for (ImageOfTable& image : images_) {
      const auto end = next + std::ssize(image.objects);
      AddImage(std::move(image.path), image.objects, {next, end}, &table);
      next = end;
    }
    return table;
  }

 private:
  struct ImageOfTable {
    std::string path;
    std::vector<NamedBox> objects;
    std::vector<int64_t> lines;  // of the objects
  };

  // False if the first line is an object: six cells, of which four are numbers or all are empty.
  bool TakeHeader(const std::vector<std::string_view>& cells, int64_t line) {
    sheet_.columns = cells.size();
    sheet_.lines.push_back(line);
    const auto is_number = [](std::string_view cell) {
      double ignored = 0;
      return IsMissing(cell) || ParseNumber(Trim(cell, kBlanksOfCells), &ignored);
    };
    if (cells.size() == 6 && std::all_of(cells.begin() + 1, cells.begin() + 5, is_number))
      return false;
    for (const std::string_view cell : cells)
      sheet_.header.emplace_back(Trim(cell, kBlanksOfCells));
    columns_ = NameBoxColumns(sheet_, line);
    return true;
  }

  void AddLine(const std::vector<std::string_view>& cells, int64_t line) {
    ImageOfTable& image = ImageOf(cells[columns_.image], line);
    const auto is_missing = [&](size_t column) {
      return IsMissing(Trim(cells[column], kBlanksOfCells));
    };
    if (std::ranges::all_of(columns_.box, is_missing)) return;
    std::array<double, 4> edges{};
    for (size_t i = 0; i < edges.size(); ++i)
      edges[i] = NumberOfCell(cells[columns_.box[i]], line, columns_.box[i]);
    if (columns_.sizes) edges[2] += edges[0], edges[3] += edges[1];
    NamedBox box;
    box.name = Trim(cells[columns_.label], kBlanksOfCells);
    if (box.name.empty())
      Throw(ErrorKind::kData, "{}: the cell is empty", sheet_.Place(line, columns_.label));
    box.left = edges[0], box.top = edges[1], box.right = edges[2], box.bottom = edges[3];
    if (Says(columns_.difficult, cells, line)) box.use = kDifficultBox;
    if (Says(columns_.crowd, cells, line)) box.use = kCrowdBox;
    farthest_ = std::max({farthest_, box.right, box.bottom});
    image.objects.push_back(std::move(box));
    image.lines.push_back(line);
  }

  ImageOfTable& ImageOf(std::string_view cell, int64_t line) {
    const auto place = [&] { return sheet_.Place(line, columns_.image); };
    if (cell.empty()) Throw(ErrorKind::kData, "{}: the cell is empty", place());
    CheckPath(cell, place);
    fs::path path = root_ / cell;
    if (columns_.adds_ending && path.extension().empty()) path += ".jpg";
    const auto [known, added] = index_of_.emplace(path.string(), images_.size());
    if (added) images_.push_back({path.string(), {}, {}});
    return images_[known->second];
  }

  double NumberOfCell(std::string_view cell, int64_t line, size_t column) const {
    cell = Trim(cell, kBlanksOfCells);
    double value = 0;
    if (cell.empty()) Throw(ErrorKind::kData, "{}: the cell is empty", sheet_.Place(line, column));
    if (!ParseNumber(cell, &value)) sheet_.ThrowNoNumber(line, column, cell);
    if (std::abs(value) < 1e9) return value;
    Throw(ErrorKind::kData, "{}: '{}' is too large for the edge of a box in pixels",
          sheet_.Place(line, column), Shortened(cell));
  }

  bool Says(std::optional<size_t> column, const std::vector<std::string_view>& cells,
            int64_t line) const {
    if (!column) return false;
    const std::string word = Lower(Trim(cells[*column], kBlanksOfCells));
    if (word == "true" || word == "false") return word == "true";
    return !IsMissing(word) && NumberOfCell(word, line, *column) != 0;
  }

  const fs::path root_;
  Sheet sheet_;
  BoxColumns columns_;
  std::vector<ImageOfTable> images_;
  std::unordered_map<std::string, size_t> index_of_;
  double farthest_ = 0;  // edge of all boxes
};

bool IsTableOfBoxes(const std::string& file) {
  constexpr size_t kBegin = size_t{64} << 10;
  std::vector<std::string> header;
  try {
    header = FirstRecord(ReadBeginMaybeGzip(file, kBegin), "auto");
  } catch (const Error&) {  // what cannot be read is not of this kind
  }
  return ColumnOf(kNamesOfImage, header) && ColumnsOf(kNamesOfEdges, header);
}

}  // namespace

std::unique_ptr<Source> NewBoxCsvSource(const BoxCsvParam& param) {
  return NewBoxFiles(BoxCsvReader(param).Finish(param.classes));
}

MXTRAIN_SOURCE(box_csv_source, sources) {
  SourceKind kind = SourceKindOf<BoxCsvParam, NewBoxCsvSource>(
      "box_csv", "images with boxes of objects in a table, a box per line (CSV)");
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    std::error_code none;
    const std::string ending = Lower(fs::path(path).extension().string());
    const bool is_table = ending == ".csv" || ending == ".tsv" || ending == ".txt";
    if (!is_table || !fs::is_regular_file(path, none) || !IsTableOfBoxes(path)) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
