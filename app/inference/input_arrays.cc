// SPDX-License-Identifier: Apache-2.0
#include "app/inference/input_arrays.h"

#include <algorithm>
#include <span>

#include "app/report/npy.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::inference {
namespace {

// "[N, 3, 8, 8]": of an array with examples of this shape.
std::string WithExamples(const TShape& shape) {
  std::string text = "[N";
  for (const int64_t dim : shape) text += format(", {}", dim);
  return text + "]";
}

}  // namespace

// Examples are rows of the arrays.
class InputArrays::ArraySource final : public io::Source {
 public:
  ArraySource(std::vector<Array> data, std::vector<Array> labels, int64_t size)
      : data_(std::move(data)), labels_(std::move(labels)), size_(size) {
    for (const Array& array : data_)
      data_fields_.push_back({array.name, io::FieldKind::kValues, array.shape});
    for (const Array& array : labels_)
      label_fields_.push_back({array.name, io::FieldKind::kValues, array.shape});
  }

  int64_t size() const override { return size_; }
  const std::vector<io::FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<io::FieldSpec>& label_fields() const override { return label_fields_; }
  void Read(int64_t index, io::Sample* sample) const override {
    Fill(data_, index, &sample->data);
    Fill(labels_, index, &sample->labels);
  }
  std::string Name(int64_t index) const override { return format("{}[{}]", data_[0].file, index); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return class_names_; }

 private:
  static void Fill(const std::vector<Array>& arrays, int64_t index,
                   std::vector<io::FieldValue>* values) {
    values->resize(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      const auto width = static_cast<size_t>(arrays[i].shape.Size());
      (*values)[i].values =
          std::span(*arrays[i].values).subspan(static_cast<size_t>(index) * width, width);
    }
  }

  const std::vector<Array> data_, labels_;
  const int64_t size_;
  std::vector<io::FieldSpec> data_fields_, label_fields_;
  std::vector<std::string> class_names_;
};

InputArrays InputArrays::Take(std::vector<std::string>* inputs) {
  InputArrays taken;
  std::vector<std::string> names;
  for (const std::string& input : *inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos) {
      names.push_back(input);
      continue;
    }
    Array array{input.substr(0, equals), input.substr(equals + 1), {}, nullptr};
    if (taken.Find(array.name))
      Throw(ErrorKind::kUsage, "--input {}: '{}' is given twice", input, array.name);
    report::NpyArray read = report::ReadNpy(array.file);
    if (read.dims.empty() || read.dims.size() >= static_cast<size_t>(TShape::kMaxDims)) {
      Throw(ErrorKind::kData,
            "{}: shape ({}); its first axis has to count the examples, and at most {} may follow",
            array.file, join(read.dims, ", "), TShape::kMaxDims - 1);
    }
    if (read.values.empty()) Throw(ErrorKind::kData, "{}: holds no numbers", array.file);
    if (taken.empty()) taken.examples_ = read.dims[0];
    if (read.dims[0] != taken.examples_) {
      Throw(ErrorKind::kUsage, "{} holds {} examples, {} holds {}; the first axis counts them",
            taken.arrays_[0].file, taken.examples_, array.file, read.dims[0]);
    }
    array.shape = TShape(std::span<const int64_t>(read.dims).subspan(1));
    array.values = std::make_shared<const std::vector<float>>(std::move(read.values));
    taken.arrays_.push_back(std::move(array));
  }
  *inputs = names;
  return taken;
}

std::vector<std::string> InputArrays::Files() const {
  std::vector<std::string> files;
  for (const Array& array : arrays_) files.push_back(array.file);
  return files;
}

std::vector<std::string> InputArrays::Names() const {
  std::vector<std::string> names;
  for (const Array& array : arrays_) names.push_back(array.name);
  return names;
}

std::map<std::string, TShape> InputArrays::Shapes() const {
  std::map<std::string, TShape> shapes;
  for (const Array& array : arrays_) shapes[array.name] = array.shape;
  return shapes;
}

void InputArrays::Rename(const std::map<std::string, std::string>& names) {
  for (Array& array : arrays_) {
    if (const auto found = names.find(array.name); found != names.end()) array.name = found->second;
  }
}

const InputArrays::Array* InputArrays::Find(const std::string& name) const {
  const auto found = std::ranges::find(arrays_, name, &Array::name);
  return found == arrays_.end() ? nullptr : &*found;
}

std::shared_ptr<const io::Source> InputArrays::ForModel(Model* model, bool labels,
                                                        const std::vector<std::string>& declared,
                                                        const Logger& log) const {
  std::vector<Array> data, label_arrays;
  // A single number for each example may be [N] or [N, 1].
  const auto fits = [](const TShape& given, const TShape& wanted) {
    return given == wanted || (given.Size() == 1 && wanted.Size() == 1);
  };
  for (InputInfo& input : model->info.inputs) {
    const Array* array = Find(input.name);
    if (!array) {
      Throw(ErrorKind::kUsage, "{}: no array for its input '{}'; give it: --input {}=FILE.npy",
            model->file, input.name, input.name);
    }
    if (!input.shape.known()) input.shape = array->shape;
    if (!fits(array->shape, input.shape)) {
      Throw(ErrorKind::kData, "{}: an array {} for the input '{}', which is {}", array->file,
            WithExamples(array->shape), input.name, WithExamples(input.shape));
    }
    data.push_back(*array);
    data.back().shape = input.shape;
  }
  for (const InputInfo& label : model->info.labels) {
    if (const Array* array = labels ? Find(label.name) : nullptr) label_arrays.push_back(*array);
  }
  for (const Array& array : arrays_) {
    const auto is = [&array](const Array& read) { return read.name == array.name; };
    if (std::ranges::any_of(data, is) || std::ranges::any_of(label_arrays, is)) continue;
    if (std::ranges::find(declared, array.name) == declared.end()) {
      const std::string guess = DidYouMean(array.name, declared);
      Throw(ErrorKind::kUsage, "--input {}: {} has no such input{}", array.name, model->file,
            guess.empty() ? format("; it has {}", join(declared, ", ")) : guess);
    }
    log.Write(LogLevel::kInfo,
              format("{} is not read: no prediction depends on '{}'", array.file, array.name));
  }
  return std::make_shared<ArraySource>(std::move(data), std::move(label_arrays), examples_);
}

}  // namespace mxtrain::inference
