// SPDX-License-Identifier: Apache-2.0
// A kind of data source from outside the library: a JSON object per line with the path of an image
// and its class. The program linked with this file knows it in every command.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

struct JsonLinesParam : Parameter<JsonLinesParam> {
  std::string path, root, label_key;
  int64_t most;
  bool labels;
  std::vector<std::string> classes;
  static void Declare(Fields<JsonLinesParam>& f) {
    using P = JsonLinesParam;
    f.Add("path", &P::path).IsPath().Required().Help("file with a JSON object per line");
    f.Add("root", &P::root).IsPath().Default("").Help("folder of the images");
    f.Add("label_key", &P::label_key).Default("label").Help("member with the class");
    f.Add("most", &P::most).Default(1000).Range(1, 5000).Help("lines that are read");
    f.Add("labels", &P::labels).Default(true).Internal().Help("False: lines need no class");
    f.Add("classes", &P::classes).Default({}).Internal().Help("class names, in order");
  }
};

class JsonLinesSource final : public Source {
 public:
  explicit JsonLinesSource(const JsonLinesParam& param) : file_(param.path) {
    const std::filesystem::path root = param.root.empty()
                                           ? std::filesystem::path(param.path).parent_path()
                                           : std::filesystem::path(param.root);
    std::istringstream text(ReadFile(param.path));
    std::vector<std::string> words;
    for (std::string line;
         std::getline(text, line) && static_cast<int64_t>(images_.size()) < param.most;) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("image"))
        Throw(ErrorKind::kData, "{}:{}: no object with an image", file_, images_.size() + 1);
      images_.push_back((root / json["image"].get<std::string>()).string());
      if (param.labels) words.push_back(json.value(param.label_key, ""));
    }
    class_names_ = param.classes;
    if (class_names_.empty()) {
      class_names_ = words;
      std::sort(class_names_.begin(), class_names_.end());
      class_names_.erase(std::unique(class_names_.begin(), class_names_.end()), class_names_.end());
    }
    for (const std::string& word : words) {
      const auto found = std::find(class_names_.begin(), class_names_.end(), word);
      if (found == class_names_.end())
        Throw(ErrorKind::kData, "{}:{}: there is no class '{}'", file_, labels_.size() + 1, word);
      labels_.push_back(static_cast<float>(found - class_names_.begin()));
    }
    if (param.labels)
      label_fields_ = {{"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(label_fields_.size());
    sample->data[0].encoded = ReadFile(FileOf(index));
    if (!labels_.empty()) sample->labels[0].values = {&labels_[static_cast<size_t>(index)], 1};
  }
  std::string Name(int64_t index) const override { return format("{}:{}", file_, index + 1); }
  std::string FileOf(int64_t index) const override { return images_[static_cast<size_t>(index)]; }
  std::optional<int> ClassOf(int64_t index) const override {
    if (labels_.empty()) return std::nullopt;
    return static_cast<int>(labels_[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  const std::string file_;
  std::vector<std::string> images_, class_names_;
  std::vector<float> labels_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape()}}, label_fields_;
};

std::unique_ptr<Source> NewJsonLinesSource(const JsonLinesParam& param) {
  return std::make_unique<JsonLinesSource>(param);
}

[[maybe_unused]] const bool registered = [] {
  SourceKind kind = SourceKindOf<JsonLinesParam, NewJsonLinesSource>(
      "json_lines", "images and classes, a JSON object per line");
  kind.recognize = [](const std::string& path) -> std::optional<Recognition> {
    if (!path.ends_with(".jsonl")) return std::nullopt;
    return Recognition{true, {{"path", path}}};
  };
  RegisterSource(std::move(kind));
  return true;
}();

}  // namespace
}  // namespace mxtrain::io
