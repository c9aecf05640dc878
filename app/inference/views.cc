// SPDX-License-Identifier: Apache-2.0
#include "app/inference/views.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/params.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain::inference {
namespace {

int64_t Widened(int64_t edge) {
  return (edge * 8 + 6) / 7;
}

// Where a view begins in an image that is `spare` pixels larger than it.
int64_t Start(int64_t spare, int corner_bit, bool middle) {
  if (middle) return spare / 2;
  return corner_bit ? spare : 0;
}

}  // namespace

void WidenForCrops(session::PipelineSpec* spec, ModelInfo* model) {
  if (model->inputs.size() != 1 || model->inputs[0].shape.ndim() != 3)
    Throw(ErrorKind::kUsage, "--tta crops needs a model of images");
  TShape& input = model->inputs[0].shape;
  input = {input[0], Widened(input[1]), Widened(input[2])};
  const std::pair<std::string, std::string> size = {"size",
                                                    params::Print(TShape{input[1], input[2]})};
  for (const char* name : {"center_crop", "letterbox", "resize"}) {
    const auto last = std::find_if(spec->transforms.rbegin(), spec->transforms.rend(),
                                   [name](const auto& t) { return t.name == name; });
    if (last == spec->transforms.rend()) continue;
    std::erase_if(last->kwargs, [](const auto& item) {
      return item.first.empty() || item.first == "size" || item.first == "fraction";
    });
    last->kwargs.push_back(size);
    return;
  }
  spec->transforms.insert(spec->transforms.begin(), {"resize", {size}});
}

ViewsIter::ViewsIter(Runtime& runtime, std::unique_ptr<DataIter> whole, const TShape& input,
                     bool crops)
    : whole_(std::move(whole)), crops_(crops), data_(whole_->provide_data()) {
  if (data_.size() != 1 || input.ndim() != 3)
    Throw(ErrorKind::kUsage, "--tta needs a model of images with one input");
  data_[0].shape = {whole_->batch_size(), input[0], input[1], input[2]};
  array_ = NDArray(runtime, data_[0].shape, data_[0].type, Context::cpu(), {}, "view");
  pixels_.resize(static_cast<size_t>(data_[0].shape.Size()));
}

void ViewsIter::Reset(int64_t epoch, int64_t first_batch) {
  whole_->Reset(epoch, first_batch / views());
  next_view_ = static_cast<int>(first_batch % views());
  batch_ = DataBatch();
}

bool ViewsIter::Next(DataBatch* batch) {
  *batch = DataBatch();
  if (next_view_ == 0 || batch_.data.empty()) {
    if (!whole_->Next(&batch_)) return false;
    batch_.data[0].WaitToRead();
  }
  Fill(next_view_);
  *batch = batch_;
  batch->data = {array_};
  batch->batch = batch_.batch * views() + next_view_;
  if (next_view_ > 0) batch->bad.clear();
  next_view_ = (next_view_ + 1) % views();
  return true;
}

// Odd views are mirrored; views 0 and 1 are the centre, the next ones the corners.
void ViewsIter::Fill(int view) {
  const TBlob from = batch_.data[0].data();
  const TShape& size = data_[0].shape;
  const int64_t height = size[2], width = size[3], from_height = from.shape[2],
                from_width = from.shape[3];
  const int corner = view / 2 - 1;
  const int64_t top = Start(from_height - height, corner & 2, corner < 0),
                left = Start(from_width - width, corner & 1, corner < 0);
  const bool mirrored = view % 2 == 1;
  ParallelFor(size[0] * size[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * height; row < end * height; ++row) {
      const float* in = from.dptr<float>() +
                        (row / height * from_height + top + row % height) * from_width + left;
      float* out = pixels_.data() + row * width;
      if (mirrored) {
        std::reverse_copy(in, in + width, out);
      } else {
        std::copy_n(in, width, out);
      }
    }
  });
  array_.CopyFromHost(pixels_.data(), static_cast<int64_t>(pixels_.size() * sizeof(float)));
}

bool MeanOfViews::Add(std::vector<float>* values) {
  if (views_ == 1) return true;
  if (seen_ == 0) sums_.assign(values->size(), 0);
  std::transform(values->begin(), values->end(), sums_.begin(), sums_.begin(),
                 [](float value, float sum) { return sum + value; });
  if (++seen_ < views_) return false;
  seen_ = 0;
  for (size_t i = 0; i < sums_.size(); ++i) (*values)[i] = sums_[i] / static_cast<float>(views_);
  return true;
}

}  // namespace mxtrain::inference
