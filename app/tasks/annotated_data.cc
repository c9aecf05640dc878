// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/annotated_data.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/folder_names.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::tasks {
namespace {

namespace fs = std::filesystem;

// What is in a folder and may be a part of the data: sub-folders and files, sorted.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code broken;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, broken))
    entries.push_back(entry.path());
  std::ranges::sort(entries);
  return entries;
}

bool HasFirstImage(const io::Source& source) {
  std::error_code none;
  return source.size() > 0 && fs::exists(source.FileOf(0), none);
}

// "instances_train2017" says train.
io::Split SplitOfFile(const fs::path& file) {
  const std::string stem = Lower(file.stem().string());
  for (const auto& [word, split] :
       {std::pair{"train", io::Split::kTrain}, std::pair{"val", io::Split::kVal},
        std::pair{"test", io::Split::kTest}}) {
    if (stem.find(word) != std::string::npos) return split;
  }
  return io::Split::kNone;
}

bool MayHoldAnnotations(const fs::path& file) {
  const std::string ending = Lower(file.extension().string());
  return ending == ".json" || ending == ".csv" || ending == ".rec";
}

// Looks for data with labels of one kind.
class Finder {
 public:
  explicit Finder(io::FieldKind wanted) : wanted_(wanted) {}

  // Nothing if it is not certainly such data.
  std::optional<AnnotatedData> Open(const fs::path& path,
                                    const std::vector<std::string>& classes) const {
    const io::RecognizedSource found = io::RecognizeSource(path.string(), "");
    if (!found.kind || !found.recognition.certain || found.kind->is_table) return std::nullopt;
    AnnotatedData data{found.kind->name, path.string(), found.recognition.params, nullptr};
    Kwargs params = data.params;
    if (wanted_ == io::FieldKind::kMask) {
      if (!found.kind->make_masks) return std::nullopt;
      params.emplace_back("label", "mask");
    }
    if (!classes.empty() && found.kind->Parameter("classes"))
      params.emplace_back("classes", params::Print(classes));
    data.source = io::MakeSource(data.kind, params);
    const bool fits =
        std::ranges::any_of(data.source->label_fields(),
                            [this](const io::FieldSpec& field) { return field.kind == wanted_; });
    if (!fits) return std::nullopt;
    if (found.kind->Parameter("root")) FindImages(params, &data);
    return data;
  }

  // Data in a folder, or in a file that lies there.
  std::optional<AnnotatedData> OpenIn(const fs::path& folder,
                                      const std::vector<std::string>& classes) const {
    if (auto data = Open(folder, classes)) return data;
    for (const fs::path& entry : EntriesOf(folder)) {
      if (!MayHoldAnnotations(entry)) continue;
      if (auto data = Open(entry, classes)) return data;
    }
    return std::nullopt;
  }

  // *seen: whether there is such a part, of whatever data.
  std::optional<AnnotatedData> PartOf(const fs::path& root, io::Split split,
                                      const std::vector<std::string>& classes, bool* seen) const {
    for (const fs::path& folder :
         {root, root / "images", root / "JPEGImages", root / "annotations"}) {
      for (const fs::path& entry : EntriesOf(folder)) {
        std::error_code broken;
        const bool is_folder = fs::is_directory(entry, broken);
        const io::Split own =
            is_folder ? io::SplitOf(entry.filename().string()) : SplitOfFile(entry);
        if (own != split || (!is_folder && !MayHoldAnnotations(entry))) continue;
        *seen = true;
        if (auto data = is_folder ? OpenIn(entry, classes) : Open(entry, classes)) return data;
      }
    }
    return std::nullopt;
  }

 private:
  // The images of a file may be in a folder beside it, which it does not name.
  static void FindImages(const Kwargs& params, AnnotatedData* data) {
    if (HasFirstImage(*data->source)) return;
    std::error_code none;
    for (const fs::path& folder : EntriesOf(fs::path(data->path).parent_path())) {
      if (!fs::is_directory(folder, none)) continue;
      Kwargs with_root = params;
      with_root.emplace_back("root", folder.string());
      auto source = io::MakeSource(data->kind, with_root);
      if (!HasFirstImage(*source)) continue;
      data->source = std::move(source);
      data->params.emplace_back("root", folder.string());
      return;
    }
  }

  const io::FieldKind wanted_;
};

}  // namespace

std::optional<AnnotatedParts> FindAnnotatedData(const RecipeRequest& request, io::FieldKind wanted,
                                                const std::vector<std::string>& classes) {
  const fs::path root = request.root;
  const Finder finder(wanted);
  bool has_train = false, has_val = false;
  std::optional<AnnotatedData> train = finder.PartOf(root, io::Split::kTrain, classes, &has_train);
  if (!train) train = finder.OpenIn(root, classes);
  if (!train) return std::nullopt;
  if (train->source->size() < 2)
    Throw(ErrorKind::kData, "{} has one image, which is not enough", train->path);
  AnnotatedParts parts{std::move(*train), std::nullopt};
  if (!has_train) return parts;
  parts.val = finder.PartOf(root, io::Split::kVal, parts.train.source->class_names(), &has_val);
  if (has_val && !parts.val) {
    request.log.Write(LogLevel::kWarning,
                      format("{} has a part for validation without {}, which is not used: a "
                             "fifth of the training data is held out",
                             root.string(), wanted == io::FieldKind::kMask ? "masks" : "boxes"));
  }
  return parts;
}

std::string SourceLines(const AnnotatedData& data, const std::string& output) {
  std::string lines = format("    source: {}\n", data.kind);
  for (const auto& [name, value] : data.params) {
    const bool is_path = io::Sources().Find(data.kind)->Parameter(name)->type == "path";
    lines += format(
        "    {}: {}\n", name,
        QuoteYaml(is_path ? PathInFile(fs::absolute(value).lexically_normal().string(), output)
                          : value));
  }
  return lines;
}

}  // namespace mxtrain::tasks
