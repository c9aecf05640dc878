// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small data sets for tests of the pipeline, and what an iterator made of them.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {

using namespace mxtrain::io;

inline Runtime MakeRuntime(const std::string& engine = "threaded") {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 2;
  return Runtime(options, nullptr);
}

// Image number i of a folder: a smooth pattern that depends on i.
inline Image Numbered(int i) {
  Image image;
  image.Resize(24 + i % 5, 30 + i % 7, 3);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < 3 * image.width; ++x)
      image.row(y)[x] = static_cast<uint8_t>(7 * i + 3 * y + x);
  }
  return image;
}

inline void WriteImages(const TempDir& dir, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = format("{}/{:03}", i % 2 ? "odd" : "even", i);
    i % 3 ? dir.Write(name + ".png", EncodePng(Numbered(i)))
          : dir.Write(name + ".jpg", EncodeJpeg(Numbered(i)));
  }
}

inline const std::vector<TransformSpec> kPlainTransforms = {{"resize", {{"", "(8, 8)"}}}};

inline PipelineParam Param(Kwargs kwargs) {
  PipelineParam param;
  param.Init(kwargs, "data");
  return param;
}

inline std::shared_ptr<const Source> Folder(const TempDir& dir) {
  return MakeSource("image_folder", {{"path", dir.path()}});
}

// A source of single numbers: example i has the data {i} and the label i.
class Counting final : public Source {
 public:
  explicit Counting(int64_t size) {
    for (int64_t i = 0; i < size; ++i) values_.push_back(static_cast<float>(i));
  }
  int64_t size() const override { return static_cast<int64_t>(values_.size()); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_; }
  void Read(int64_t index, Sample* sample) const override {
    if (broken.count(index)) Throw(ErrorKind::kData, "broken");
    if (index == bug) Throw(ErrorKind::kBug, "a bug at {}", index);
    sample->data.resize(1);
    sample->labels.resize(1);
    sample->data[0].values = sample->labels[0].values = {&values_[static_cast<size_t>(index)], 1};
  }
  std::string Name(int64_t index) const override { return format("number {}", index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return none_; }

  std::set<int64_t> broken;
  int64_t bug = -1;

 private:
  std::vector<float> values_;
  std::vector<std::string> none_;
  std::vector<FieldSpec> data_ = {{"data", FieldKind::kValues, TShape{1}}},
                         label_ = {{"label", FieldKind::kValues, TShape{1}}};
};

// A batch's contents, copied out.
struct Copied {
  std::vector<float> data, label;
  std::vector<int64_t> index;
  int64_t count = 0;
  bool operator==(const Copied&) const = default;
};

inline Copied CopyOf(const DataBatch& batch) {
  return {batch.data[0].ToVector(),
          batch.label.empty() ? std::vector<float>() : batch.label[0].ToVector(), batch.index,
          batch.count};
}

inline std::vector<Copied> RunOut(DataIter& iter) {
  std::vector<Copied> batches;
  DataBatch batch;
  while (iter.Next(&batch)) {
    CHECK(batch.batch == static_cast<int64_t>(batches.size()));
    batches.push_back(CopyOf(batch));
  }
  return batches;
}

inline std::vector<int64_t> Indices(const std::vector<Copied>& batches) {
  std::vector<int64_t> all;
  for (const Copied& batch : batches) all.insert(all.end(), batch.index.begin(), batch.index.end());
  return all;
}

}  // namespace mxtrain::test
