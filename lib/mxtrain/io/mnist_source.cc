// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/mnist_source.h"

#include <algorithm>
#include <filesystem>

#include "mxtrain/base/file.h"
#include "mxtrain/io/internal/big_endian.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::io {
namespace {

constexpr size_t kMostIdxBytes = size_t{4} << 30;

// A tensor of unsigned bytes, in the memory of its file.
struct Idx {
  std::string file, bytes;
  std::vector<int64_t> dims;
  size_t offset = 0;  // of the first element

  const uint8_t* elements() const {
    return reinterpret_cast<const uint8_t*>(bytes.data()) + offset;
  }
};

// NAME, NAME.gz, or with a dot before "idx", as in some copies.
std::string FindFile(const std::string& folder, const std::string& stem,
                     const std::string& ending) {
  for (const char* joint : {"-", "."}) {
    for (const char* packing : {"", ".gz"}) {
      const std::string path =
          (std::filesystem::path(folder) / format("{}{}{}{}", stem, joint, ending, packing))
              .string();
      if (std::filesystem::is_regular_file(path)) return path;
    }
  }
  Throw(ErrorKind::kFileSystem,
        "mnist: {} has neither {}-{} nor {}-{}.gz; give the folder that holds MNIST's IDX files as "
        "'path'",
        folder, stem, ending, stem, ending);
}

Idx ReadIdx(const std::string& path, int ndim) {
  Idx idx;
  idx.file = path;
  idx.offset = 4 + 4 * static_cast<size_t>(ndim);
  idx.bytes = ReadBeginMaybeGzip(path, idx.offset);
  if (idx.bytes.size() < idx.offset) {
    Throw(ErrorKind::kData, "{} is damaged: {} bytes are less than the header of an IDX file", path,
          idx.bytes.size());
  }
  const int64_t magic = BigEndian32(idx.bytes, 0);
  if (magic != 0x800 + ndim) {
    Throw(ErrorKind::kData,
          "{} is not an IDX file of unsigned bytes in {} dimensions: it begins with {:#010x}, not "
          "{:#010x}",
          path, ndim, magic, 0x800 + ndim);
  }
  uint64_t expected = 1;
  for (int i = 0; i < ndim; ++i) {
    idx.dims.push_back(BigEndian32(idx.bytes, 4 + 4 * static_cast<size_t>(i)));
    expected *= static_cast<uint64_t>(idx.dims.back());
    if (expected > kMostIdxBytes)
      Throw(ErrorKind::kData, "{}: its header promises [{}] bytes; the limit is {}", path,
            join(idx.dims, ", "), kMostIdxBytes);
  }
  // No more than the header promises: a small gzip file may decompress to any size.
  idx.bytes = ReadBeginMaybeGzip(path, idx.offset + expected + 1);
  const size_t follow = idx.bytes.size() - idx.offset;
  if (follow != expected) {
    Throw(ErrorKind::kData, "{} is damaged: its header promises [{}] bytes, {} follow", path,
          join(idx.dims, ", "), follow > expected ? "more" : std::to_string(follow));
  }
  return idx;
}

class MnistSource final : public Source {
 public:
  explicit MnistSource(const MnistParam& param) {
    const std::string stem = param.split == MnistParam::kTrain ? "train" : "t10k";
    images_ = ReadIdx(FindFile(param.path, stem + "-images", "idx3-ubyte"), 3);
    const Idx labels = ReadIdx(FindFile(param.path, stem + "-labels", "idx1-ubyte"), 1);
    size_ = images_.dims[0];
    if (labels.dims[0] != size_) {
      Throw(ErrorKind::kData, "{} holds {} images, but {} holds {} labels", images_.file, size_,
            labels.file, labels.dims[0]);
    }
    bytes_per_image_ = static_cast<size_t>(images_.dims[1] * images_.dims[2]);
    labels_.assign(labels.elements(), labels.elements() + size_);
    const int classes =
        size_ ? 1 + static_cast<int>(*std::max_element(labels_.begin(), labels_.end())) : 0;
    for (int i = 0; i < classes; ++i) class_names_.push_back(std::to_string(i));
    data_fields_ = {{"data", FieldKind::kImage, TShape{1, images_.dims[1], images_.dims[2]}}};
    label_fields_ = {{"softmax_label", FieldKind::kValues, TShape(std::span<const int64_t>{})}};
  }

  int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, Sample* sample) const override {
    sample->data.resize(1);
    sample->labels.resize(1);
    sample->data[0].pixels = {images_.elements() + static_cast<size_t>(index) * bytes_per_image_,
                              bytes_per_image_};
    sample->labels[0].values = {labels_.data() + index, 1};
  }
  std::string Name(int64_t index) const override { return format("{}[{}]", images_.file, index); }
  std::optional<int> ClassOf(int64_t index) const override {
    return static_cast<int>(labels_[static_cast<size_t>(index)]);
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  Idx images_;
  std::vector<float> labels_;
  int64_t size_ = 0;
  size_t bytes_per_image_ = 0;
  std::vector<std::string> class_names_;
  std::vector<FieldSpec> data_fields_, label_fields_;
};

std::optional<Recognition> RecognizeMnist(const std::string& path) {
  for (const char* packing : {"", ".gz"}) {
    const std::string name = format("t10k-labels-idx1-ubyte{}", packing);
    if (std::filesystem::exists(std::filesystem::path(path) / name))
      return Recognition{true, {{"path", path}, {"split", "test"}}};
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Source> NewMnistSource(const MnistParam& param) {
  return std::make_unique<MnistSource>(param);
}

MXTRAIN_SOURCE(mnist_source, sources) {
  SourceKind mnist =
      SourceKindOf<MnistParam, NewMnistSource>("mnist", "IDX files of MNIST and its relatives");
  mnist.recognize = RecognizeMnist;
  sources.Add(std::move(mnist));
}

}  // namespace mxtrain::io
