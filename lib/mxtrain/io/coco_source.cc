// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_source.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/box_files.h"
#include "mxtrain/io/internal/coco_masks.h"
#include "mxtrain/io/internal/coco_objects.h"
#include "mxtrain/io/internal/plain_text.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

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
  const CocoTables tables = ReadCocoFile(file, CocoContent::kBoxes);
  if (tables.images.empty()) Throw(ErrorKind::kData, "{}: it names no images", file);
  BoxTable table;
  table.columns = kBoxColumns + 1;
  table.classes = param.classes.empty() ? CategoryNames(tables) : param.classes;
  CocoObjects objects = ArrangeObjects(tables, table.classes, file);
  for (size_t k = 0; k < objects.order.size(); ++k) {
    const CocoObject& object = tables.objects[objects.order[k]];
    for (const double value :
         {static_cast<double>(objects.labels[k]), object.left, object.top, object.right,
          object.bottom, static_cast<double>(object.crowd ? kCrowdBox : kPlainBox), object.area})
      table.rows.push_back(static_cast<float>(value));
  }
  table.ends = std::move(objects.ends);
  table.paths = CocoImagePaths(tables, param.root, file, &table.warnings);
  return NewBoxFiles(std::move(table));
}

MXTRAIN_SOURCE(coco_source, sources) {
  SourceKind kind = SourceKindOf<CocoParam, NewCocoSource>(
      "coco", "images with boxes or masks of objects in one JSON file (COCO)");
  kind.make_masks = [](const Kwargs& kwargs) {
    CocoParam param;
    param.Init(kwargs, "coco");
    return NewCocoMasks(param);
  };
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
