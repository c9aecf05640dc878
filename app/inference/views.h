// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test-time augmentation: the outputs for several views of each image are averaged.
//
//   flip    2 views: the image as the model's pipeline gives it, and mirrored left to right
//   crops  10 views: the centre and the four corners of a square of 8/7 of the net's input (256 for
//          an input of 224), each also mirrored (Krizhevsky et al., "ImageNet Classification with
//          Deep Convolutional Neural Networks", 2012, section 4.1)
#include <memory>
#include <string>
#include <vector>

#include "app/session/pipeline_spec.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::inference {

// Enlarges the output of a model's pipeline for crops: its last center_crop (or, without one, its
// last resize, or an added resize) gets 8/7 of the size. Throws kUsage for a model whose input is
// not an image.
void WidenForCrops(session::PipelineSpec* spec, ModelInfo* model);

// Returns every batch of another iterator once per view; pixels are copied, nothing is decoded
// twice.
class ViewsIter final : public DataIter {
 public:
  // `input`: [C, H, W] of the net. The iterator's images are float32 on the host and have that size
  // (flip), or are larger (crops).
  ViewsIter(Runtime& runtime, std::unique_ptr<DataIter> whole, const TShape& input, bool crops);

  int views() const { return crops_ ? 10 : 2; }
  std::vector<DataDesc> provide_data() const override { return data_; }
  std::vector<DataDesc> provide_label() const override { return whole_->provide_label(); }
  int64_t batch_size() const override { return whole_->batch_size(); }
  int64_t batches_per_epoch() const override { return whole_->batches_per_epoch() * views(); }
  int64_t examples() const override { return whole_->examples(); }
  std::string ExampleName(int64_t index) const override { return whole_->ExampleName(index); }
  void Reset(int64_t epoch, int64_t first_batch) override;
  bool Next(DataBatch* batch) override;
  Stats stats() const override { return whole_->stats(); }

 private:
  void Fill(int view);

  const std::unique_ptr<DataIter> whole_;
  const bool crops_;
  std::vector<DataDesc> data_;
  NDArray array_;  // [N, C, H, W] of the current view
  std::vector<float> pixels_;
  DataBatch batch_;  // that the views are of
  int next_view_ = 0;
};

// The mean of a net's outputs over the views of a batch.
class MeanOfViews {
 public:
  explicit MeanOfViews(int views) : views_(views) {}
  // True after the last view of a batch: *values then holds the means.
  bool Add(std::vector<float>* values);

 private:
  const int views_;
  int seen_ = 0;
  std::vector<float> sums_;
};

}  // namespace mxtrain::inference
