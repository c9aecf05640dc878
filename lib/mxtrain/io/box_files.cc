// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/box_files.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/image_folder_source.h"
#include "mxtrain/io/internal/composition.h"
#include "mxtrain/io/internal/image_files.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

class BoxFiles final : public Source {
 public:
  explicit BoxFiles(BoxTable table) : table_(std::move(table)) {
    notes_ = std::move(table_.notes);
    warnings_ = std::move(table_.warnings);
    losses_ = std::move(table_.losses);
    size_t most = 1;
    for (size_t i = 0; i < table_.ends.size(); ++i)
      most = std::max(most, table_.ends[i] - First(i));
    label_fields_ = {
        {"label", FieldKind::kBoxes, TShape{static_cast<int64_t>(most), table_.columns}}};
  }

  int64_t size() const override { return static_cast<int64_t>(table_.paths.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    if (const auto why = table_.unreadable.find(static_cast<size_t>(index));
        why != table_.unreadable.end())
      Throw(ErrorKind::kData, "{}", why->second);
    sample->data.resize(1);
    sample->labels.resize(1);
    sample->labels[0].values = LabelOf(index, 0, sample);
    sample->data[0].encoded = ReadImageFile(table_.paths[static_cast<size_t>(index)]);
  }
  std::span<const float> LabelOf(int64_t index, size_t, Sample*) const override {
    const auto i = static_cast<size_t>(index), columns = static_cast<size_t>(table_.columns);
    return std::span(table_.rows)
        .subspan(First(i) * columns, (table_.ends[i] - First(i)) * columns);
  }
  std::string Name(int64_t index) const override { return FileOf(index); }
  std::string FileOf(int64_t index) const override {
    return table_.paths[static_cast<size_t>(index)];
  }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return table_.classes; }

 private:
  size_t First(size_t i) const { return i == 0 ? 0 : table_.ends[i - 1]; }

  BoxTable table_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}}, label_fields_;
};

bool HasFiles(const fs::path& folder, const std::string& ending) {
  std::error_code none;
  const fs::directory_iterator files(folder, none);
  return !none && std::any_of(begin(files), end(files), [&ending](const fs::directory_entry& file) {
    return Lower(file.path().extension().string()) == ending;
  });
}

// The first subfolder with one of these names, in lower case; empty if there is none.
fs::path SubfolderOf(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code none;
  for (const std::string& name : names) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
      if (entry.is_directory(none) && Lower(entry.path().filename().string()) == name)
        return entry.path();
    }
  }
  return {};
}

}  // namespace

void WrongFiles::ThrowIfAny() const {
  constexpr size_t kMostMore = 4;
  if (errors_.empty()) return;
  if (errors_.size() == 1) throw Error(ErrorKind::kData, errors_[0]);
  const std::vector<std::string> more(errors_.begin() + 1, errors_.end());
  Throw(ErrorKind::kData, "{}; {} more {} wrong: {}", errors_[0], more.size(),
        more.size() == 1 ? "file is" : "files are", FirstOf(more, kMostMore, "; "));
}

std::unique_ptr<Source> NewBoxFiles(BoxTable table) {
  return std::make_unique<BoxFiles>(std::move(table));
}

void AddImage(std::string path, const std::vector<NamedBox>& objects,
              const std::vector<int64_t>& numbers, BoxTable* table) {
  for (size_t i = 0; i < objects.size(); ++i) {
    const NamedBox& box = objects[i];
    for (const double value : {static_cast<double>(numbers[i]), box.left, box.top, box.right,
                               box.bottom, static_cast<double>(box.use)})
      table->rows.push_back(static_cast<float>(value));
  }
  table->ends.push_back((table->ends.empty() ? 0 : table->ends.back()) + objects.size());
  table->paths.push_back(std::move(path));
}

NameNumbers NumberNames(const std::vector<std::string>& names,
                        const std::vector<std::string>& given,
                        const std::function<std::string(size_t)>& place) {
  NameNumbers result{{}, given};
  if (given.empty()) {
    result.classes = names;
    std::ranges::sort(result.classes);
    result.classes.erase(std::unique(result.classes.begin(), result.classes.end()),
                         result.classes.end());
  }
  std::map<std::string, int64_t> number_of;
  for (size_t k = 0; k < result.classes.size(); ++k) {
    if (!number_of.emplace(result.classes[k], static_cast<int64_t>(k)).second)
      Throw(ErrorKind::kConfig, "classes names '{}' twice", Shortened(result.classes[k]));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = number_of.find(names[i]);
    if (found == number_of.end()) {
      Throw(ErrorKind::kData, "{}: the class '{}' is not one of the {} classes ({}){}", place(i),
            Shortened(names[i]), given.size(), Shortened(FirstOf(given, 20), 500),
            WhyNotAmong(names[i], given));
    }
    result.numbers.push_back(found->second);
  }
  return result;
}

std::optional<AnnotatedFolder> FindAnnotations(const std::string& path, const std::string& ending) {
  static const std::vector<std::string> kImageNames = {"images", "jpegimages", "image", "imgs"},
                                        kFileNames = {"annotations", "labels", "annotation",
                                                      "xmls",        "xml",    "label"};
  std::error_code none;
  const fs::path root = fs::path(path).lexically_normal();
  if (!fs::is_directory(root, none)) return std::nullopt;
  const fs::path images = SubfolderOf(root, kImageNames), below = SubfolderOf(root, kFileNames);
  if (!below.empty() && HasFiles(below, ending))
    return AnnotatedFolder{(images.empty() ? root : images).string(), below.string()};
  if (HasFiles(root, ending)) return AnnotatedFolder{root.string(), root.string()};
  const fs::path absolute = fs::absolute(root / "").lexically_normal().parent_path();
  const fs::path beside = SubfolderOf(absolute.parent_path(), kFileNames);
  const bool is_images = std::ranges::count(kImageNames, Lower(absolute.filename().string())) > 0;
  if (is_images && !beside.empty() && HasFiles(beside, ending))
    return AnnotatedFolder{root.string(), beside.string()};
  return std::nullopt;
}

std::vector<std::string> ImagesIn(const std::string& folder) {
  ImageListParam param;
  param.Init({{"path", folder}, {"recursive", "True"}}, "image_list");
  const auto images = NewImageListSource(param);
  std::vector<std::string> paths;
  for (int64_t i = 0; i < images->size(); ++i) paths.push_back(images->FileOf(i));
  return paths;
}

}  // namespace mxtrain::io
