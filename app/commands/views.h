#pragma once
// Test-time augmentation: a model looks at several views of each picture, and its answers are averaged.
//
//   flip    2 views: the picture as the model's pipeline gives it, and mirrored left to right
//   crops  10 views: the middle and the four corners of a square of 8/7 of the net's input (256 for an input of 224), each also mirrored
//          (Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, section 4.1)
#include <memory>
#include <string>
#include <vector>

#include "app/commands/pipeline_spec.h"
#include "mxtrain/io/data_iter.h"

namespace mxtrain::commands {

// The pipeline and the input of a model, so that pictures come out large enough for crops: its last center_crop (or, without one, its last
// resize, or a resize of its own) takes 8/7 of the size. Throws kUsage for a model whose input is no picture.
void WidenForCrops(PipelineSpec* spec, ModelInfo* model);

// Hands out every batch of another iterator once for each view; bytes of pictures are copied, nothing is decoded twice.
class ViewsIter final : public DataIter {
 public:
  // `input`: [C, H, W] of the net. The iterator's pictures are float32 on the host and have that size (flip), or are larger (crops).
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
  NDArray array_;  // [N, C, H, W] of the present view
  std::vector<float> pixels_;
  DataBatch batch_;  // that the views are of
  int next_view_ = 0;
};

// The mean of a net's answers to the views of a batch.
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

}  // namespace mxtrain::commands
