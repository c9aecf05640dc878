// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/coco_objects.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/internal/composition.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

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

// Of a category: the class, -1 if it is not one of the names.
struct NumberedCategory {
  int label = 0;
  std::string name;
};
using CategoriesById = std::unordered_map<std::string, NumberedCategory>;

CategoriesById NumberCategories(const std::vector<CocoCategory>& categories,
                                const std::vector<std::string>& names, const std::string& file) {
  std::unordered_map<std::string, std::string> id_of;
  for (const CocoCategory& category : categories) {
    if (const auto [known, added] = id_of.emplace(category.name, category.id); !added) {
      Throw(ErrorKind::kData, "{}: two categories have the name '{}', of the ids {} and {}", file,
            Shortened(category.name), Shortened(known->second), Shortened(category.id));
    }
  }
  std::unordered_map<std::string, int> label_of;
  for (const std::string& name : names) {
    if (!label_of.emplace(name, static_cast<int>(label_of.size())).second)
      Throw(ErrorKind::kConfig, "classes names '{}' twice", Shortened(name));
  }
  CategoriesById by_id;
  for (const CocoCategory& category : categories) {
    const auto found = label_of.find(category.name);
    const int label = found == label_of.end() ? -1 : found->second;
    if (!by_id.emplace(category.id, NumberedCategory{label, category.name}).second)
      Throw(ErrorKind::kData, "{}: two categories have the id {}", file, Shortened(category.id));
  }
  return by_id;
}

void GroupObjects(const CocoTables& tables, const std::string& file, CocoObjects* objects) {
  std::unordered_map<std::string_view, size_t> index_of;
  for (const CocoImage& image : tables.images) {
    if (!index_of.emplace(image.id, index_of.size()).second)
      Throw(ErrorKind::kData, "{}: two images have the id {}", file, Shortened(image.id));
  }
  std::vector<size_t> image_of, next(tables.images.size() + 1);
  for (const CocoObject& object : tables.objects) {
    const auto found = index_of.find(object.image);
    if (found == index_of.end()) {
      Throw(ErrorKind::kData, "{}: annotation {} is of the image {}, which is not in the file",
            file, Shortened(object.id), Shortened(object.image));
    }
    image_of.push_back(found->second);
    ++next[found->second + 1];
  }
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  objects->ends.assign(next.begin() + 1, next.end());
  objects->order.resize(tables.objects.size());
  for (size_t i = 0; i < image_of.size(); ++i) objects->order[next[image_of[i]]++] = i;
}

int LabelOfObject(const CocoObject& object, const CategoriesById& categories,
                  const std::vector<std::string>& names, const std::string& file) {
  const auto found = categories.find(object.category);
  if (found == categories.end()) {
    Throw(ErrorKind::kData, "{}: annotation {} is of the category {}, which is not in the file",
          file, Shortened(object.id), Shortened(object.category));
  }
  const auto& [label, name] = found->second;
  if (label < 0) {
    Throw(ErrorKind::kData,
          "{}: annotation {}: the category '{}' is not one of the {} classes ({}){}", file,
          Shortened(object.id), Shortened(name), names.size(), Shortened(FirstOf(names, 20), 500),
          WhyNotAmong(name, names));
  }
  return label;
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

}  // namespace

std::vector<std::string> CategoryNames(const CocoTables& tables) {
  std::vector<CocoCategory> categories = tables.categories;
  std::ranges::sort(categories, IdIsLess);
  std::vector<std::string> names;
  for (CocoCategory& category : categories) names.push_back(std::move(category.name));
  return names;
}

CocoObjects ArrangeObjects(const CocoTables& tables, const std::vector<std::string>& classes,
                           const std::string& file) {
  const CategoriesById categories = NumberCategories(tables.categories, classes, file);
  CocoObjects objects;
  GroupObjects(tables, file, &objects);
  for (const size_t i : objects.order)
    objects.labels.push_back(LabelOfObject(tables.objects[i], categories, classes, file));
  return objects;
}

std::vector<std::string> CocoImagePaths(const CocoTables& tables, const std::string& root,
                                        const std::string& file,
                                        std::vector<std::string>* warnings) {
  const fs::path folder =
      root.empty() ? RootOfCoco(file, tables.images[0].file_name, warnings) : root;
  std::vector<std::string> paths;
  for (const CocoImage& image : tables.images)
    paths.push_back((folder / image.file_name).lexically_normal().string());
  return paths;
}

}  // namespace mxtrain::io
