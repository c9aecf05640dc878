// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/cifar_source.h"

#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/io/internal/text_columns.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPixels = 32 * 32, kImageBytes = 3 * kPixels;

struct CifarLayout {
  const char* name;
  std::vector<std::string> train, test;
  const char* class_file;
  size_t label_bytes, classes;  // the last of the label bytes is the label
};

std::vector<std::string> ClassNames(const std::string& folder, const CifarLayout& layout) {
  std::vector<std::string> names;
  const fs::path file = fs::path(folder) / layout.class_file;
  if (fs::is_regular_file(file))
    ForEachLine(ReadFile(file.string()),
                [&](std::string_view line, int64_t) { names.emplace_back(line); });
  if (names.size() == layout.classes) return names;
  names.clear();
  for (size_t k = 0; k < layout.classes; ++k) names.push_back(std::to_string(k));
  return names;
}

class CifarSource final : public Source {
 public:
  CifarSource(const CifarParam& param, const CifarLayout& layout)
      : class_names_(ClassNames(param.path, layout)) {
    for (const std::string& name : param.split == CifarParam::kTrain ? layout.train : layout.test) {
      const fs::path file = fs::path(param.path) / name;
      if (!fs::is_regular_file(file)) {
        Throw(ErrorKind::kFileSystem,
              "{}: {} has no {}; give the folder that holds the binary version's files as 'path'",
              layout.name, param.path, name);
      }
      AddFile(file.string(), layout);
    }
  }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    const auto i = static_cast<size_t>(index);
    sample->data.resize(1);
    sample->labels.resize(1);
    sample->data[0].pixels = {pixels_.data() + i * kImageBytes, kImageBytes};
    sample->labels[0].values = {&labels_[i], 1};
  }
  std::string Name(int64_t index) const override {
    size_t file = files_.size() - 1;
    while (files_[file].second > index) --file;
    return format("{}[{}]", files_[file].first, index - files_[file].second);
  }
  std::optional<int> ClassOf(int64_t index) const override {
    return static_cast<int>(labels_[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  void AddFile(const std::string& file, const CifarLayout& layout) {
    const std::string bytes = ReadFile(file);
    const size_t record = layout.label_bytes + kImageBytes;
    if (bytes.empty() || bytes.size() % record != 0) {
      Throw(ErrorKind::kData,
            "{} is damaged: its {} bytes are not a multiple of the record size {}", file,
            bytes.size(), record);
    }
    files_.emplace_back(file, size());
    for (size_t at = 0; at < bytes.size(); at += record) {
      const auto label = static_cast<unsigned char>(bytes[at + layout.label_bytes - 1]);
      if (label >= layout.classes) {
        Throw(ErrorKind::kData,
              "{} is damaged: the label {} of its image {} is outside the {} classes", file, label,
              at / record, layout.classes);
      }
      labels_.push_back(label);
      const char* planes = bytes.data() + at + layout.label_bytes;
      for (size_t i = 0; i < kPixels; ++i) {
        for (size_t c = 0; c < 3; ++c)
          pixels_.push_back(static_cast<uint8_t>(planes[c * kPixels + i]));
      }
    }
  }

  std::vector<uint8_t> pixels_;  // [N, 32, 32, 3]
  std::vector<float> labels_;
  std::vector<std::pair<std::string, int64_t>> files_;  // with the number of their first image
  std::vector<std::string> class_names_;
  std::vector<FieldSpec> data_fields_ = {{"data", FieldKind::kImage, TShape{3, 32, 32}}};
  std::vector<FieldSpec> label_fields_ = {
      {"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
};

// The layouts. Both are of the binary version.
const CifarLayout& Cifar10() {
  static const CifarLayout layout = [] {
    CifarLayout l{"cifar10", {}, {"test_batch.bin"}, "batches.meta.txt", 1, 10};
    for (int i = 1; i <= 5; ++i) l.train.push_back(format("data_batch_{}.bin", i));
    return l;
  }();
  return layout;
}

const CifarLayout& Cifar100() {
  static const CifarLayout layout{
      "cifar100", {"train.bin"}, {"test.bin"}, "fine_label_names.txt", 2, 100};
  return layout;
}

SourceKind CifarKind(const CifarLayout& layout, SourceKind kind) {
  kind.num_classes = static_cast<int64_t>(layout.classes);
  kind.recognize = [&layout](const std::string& path) -> std::optional<Recognition> {
    if (!fs::exists(fs::path(path) / layout.test[0])) return std::nullopt;
    return Recognition{true, {{"path", path}, {"split", "test"}}};
  };
  return kind;
}

}  // namespace

std::unique_ptr<Source> NewCifar10Source(const CifarParam& param) {
  return std::make_unique<CifarSource>(param, Cifar10());
}

std::unique_ptr<Source> NewCifar100Source(const CifarParam& param) {
  return std::make_unique<CifarSource>(param, Cifar100());
}

MXTRAIN_SOURCE(cifar_source, sources) {
  sources.Add(CifarKind(Cifar10(), SourceKindOf<CifarParam, NewCifar10Source>(
                                       "cifar10", "binary files of CIFAR-10")));
  sources.Add(CifarKind(Cifar100(), SourceKindOf<CifarParam, NewCifar100Source>(
                                        "cifar100", "binary files of CIFAR-100, fine labels")));
}

}  // namespace mxtrain::io
