// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/example.h"

#include <algorithm>

namespace mxtrain::tasks {

int64_t Example::index() const {
  return all_ ? all_->batch_.index[row_] : 0;
}

std::string Example::name() const {
  return all_ ? all_->iter_.ExampleName(index()) : "";
}

const io::ImageOrigin& Example::origin() const {
  static const io::ImageOrigin unknown;
  return all_ && !all_->batch_.origins.empty() ? all_->batch_.origins[row_] : unknown;
}

std::span<const float> Example::Input(size_t input) const {
  if (!all_) return {};
  std::vector<float>& values = all_->values_[input];
  if (values.empty()) values = InputValues(all_->inputs_[input], all_->batch_.data[input]);
  const TShape& shape = all_->inputs_[input].shape;
  const auto width = static_cast<size_t>(shape.Size() / shape[0]);
  return std::span(values).subspan(row_ * width, width);
}

std::optional<io::Image> Example::Shown(const report::ImageReader& reader) const {
  const auto image = std::ranges::find_if(inputs(), report::ImageReader::IsImage);
  if (image == inputs().end()) return std::nullopt;
  return reader.Read(Input(static_cast<size_t>(image - inputs().begin())).data(), image->shape);
}

const std::vector<DataDesc>& Example::inputs() const {
  static const std::vector<DataDesc> none;
  return all_ ? all_->inputs_ : none;
}

const io::Source* Example::source() const {
  return all_ ? all_->source_ : nullptr;
}

Examples::Examples(const DataBatch& batch, const DataIter& iter, const io::Source* source)
    : batch_(batch),
      iter_(iter),
      source_(source),
      inputs_(ArraysOfBatch(iter, batch).data),
      values_(inputs_.size()) {}

}  // namespace mxtrain::tasks
