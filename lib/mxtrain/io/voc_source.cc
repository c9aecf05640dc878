// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/voc_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <pugixml.hpp>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostXmlBytes = size_t{16} << 20, kMostSetBytes = size_t{1} << 30;

// A number in an element of a box.
double NumberIn(const pugi::xml_node& box, const char* element, const std::string& file,
                size_t object) {
  const std::string_view text = Trim(box.child(element).text().get(), kBlanks);
  double value = 0;
  if (ParseNumber(text, &value) && std::isfinite(value) && std::abs(value) < 1e9) return value;
  Throw(ErrorKind::kData, "{}: object {}: {} is '{}', expected a number of pixels", file, object,
        element, Shortened(text));
}

std::vector<NamedBox> ReadAnnotation(const std::string& file) {
  const std::string bytes = ReadFile(file, kMostXmlBytes);
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(bytes.data(), bytes.size());
  if (!result) {
    // Of a file in another encoding the place is in a converted copy, which may be longer.
    std::string place = file;
    if (result.encoding == pugi::encoding_utf8)
      place += format(":{}", 1 + std::count(bytes.begin(), bytes.begin() + result.offset, '\n'));
    Throw(ErrorKind::kData, "{}: not XML: {}", place, result.description());
  }
  const pugi::xml_node annotation = document.child("annotation");
  if (!annotation) {
    Throw(ErrorKind::kData, "{}: expected <annotation>, as in Pascal VOC, got <{}>", file,
          Shortened(document.document_element().name()));
  }
  std::vector<NamedBox> objects;
  for (const pugi::xml_node& object : annotation.children("object")) {
    const size_t number = objects.size() + 1;
    const pugi::xml_node corners = object.child("bndbox");
    NamedBox box;
    box.name = Trim(object.child("name").text().get(), kBlanks);
    if (box.name.empty()) Throw(ErrorKind::kData, "{}: object {} has no <name>", file, number);
    if (!corners) Throw(ErrorKind::kData, "{}: object {} has no <bndbox>", file, number);
    box.left = NumberIn(corners, "xmin", file, number);
    box.top = NumberIn(corners, "ymin", file, number);
    box.right = NumberIn(corners, "xmax", file, number);
    box.bottom = NumberIn(corners, "ymax", file, number);
    if (Trim(object.child("difficult").text().get(), kBlanks) == "1") box.use = kDifficultBox;
    objects.push_back(std::move(box));
  }
  return objects;
}

// The names of a set: the first word of each line. Lines of a set of one class end in -1 where it
// is not in the image.
std::set<std::string> NamesOfSet(const std::string& file) {
  std::set<std::string> names;
  const std::string text = PlainText(ReadFile(file, kMostSetBytes), file);
  ForEachLine(text, [&names](std::string_view line, int64_t) {
    const size_t blank = line.find_first_of(" \t");
    const bool absent =
        blank != std::string_view::npos && Trim(line.substr(blank), kBlanks) == "-1";
    if (!absent) names.emplace(line.substr(0, blank));
  });
  return names;
}

// "train" is ImageSets/Main/train.txt.
std::string FileOfSet(const VocParam& param) {
  const fs::path root = param.path, usual = root / "ImageSets" / "Main" / (param.set + ".txt");
  return (fs::exists(usual) ? usual : root / param.set).string();
}

AnnotatedFolder FoldersOf(const VocParam& param) {
  if (!param.annotations.empty()) {
    for (const std::string& folder : {param.path, param.annotations}) {
      if (!fs::is_directory(folder)) Throw(ErrorKind::kFileSystem, "{} is no folder", folder);
    }
    return {param.path, param.annotations};
  }
  const auto found = FindAnnotations(param.path, ".xml");
  if (found) return *found;
  Throw(ErrorKind::kFileSystem,
        "{}: no XML files there, in a folder 'annotations' in it or beside it: name their folder "
        "as annotations",
        param.path);
}

}  // namespace

std::unique_ptr<Source> NewVocSource(const VocParam& param) {
  const AnnotatedFolder folders = FoldersOf(param);
  const std::set<std::string> wanted =
      param.set.empty() ? std::set<std::string>() : NamesOfSet(FileOfSet(param));
  BoxTable table;
  std::vector<std::string> paths, names, places;
  std::vector<std::vector<NamedBox>> objects;
  WrongFiles wrong;
  int64_t without = 0;
  std::string first_without;
  for (std::string& image : ImagesIn(folders.images)) {
    const fs::path below = fs::path(image).lexically_relative(folders.images).replace_extension();
    if (!param.set.empty() && !wanted.contains(below.generic_string())) continue;
    const std::string file = (fs::path(folders.annotations) / below).string() + ".xml";
    if (!fs::exists(file)) {
      if (without++ == 0) first_without = image;
      continue;
    }
    objects.emplace_back();
    wrong.Try([&] { objects.back() = ReadAnnotation(file); });
    for (const NamedBox& box : objects.back()) {
      names.push_back(box.name);
      places.push_back(file);
    }
    paths.push_back(std::move(image));
  }
  wrong.ThrowIfAny();
  if (paths.empty()) {
    Throw(ErrorKind::kData, "no image in {} has an annotation of its name in {}{}", folders.images,
          folders.annotations, param.set.empty() ? "" : " and is in " + param.set);
  }
  if (without > 0) {
    table.warnings.push_back(format("{} without an annotation skipped (first: {})",
                                    Counted(without, "image"), first_without));
  }
  NameNumbers numbered =
      NumberNames(names, param.classes, [&places](size_t i) { return places[i]; });
  table.classes = std::move(numbered.classes);
  auto next = numbered.numbers.begin();
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto end = next + std::ssize(objects[i]);
    AddImage(std::move(paths[i]), objects[i], {next, end}, &table);
    next = end;
  }
  return NewBoxFiles(std::move(table));
}

MXTRAIN_SOURCE(voc_source, sources) {
  SourceKind kind = SourceKindOf<VocParam, NewVocSource>(
      "voc", "images with boxes of objects, an XML file each (Pascal VOC)");
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (!FindAnnotations(path, ".xml")) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  sources.Add(std::move(kind));
}

}  // namespace mxtrain::io
