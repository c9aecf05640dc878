#pragma once
// Sheets of pictures as a net gets them, with lines of text below each: the first batch of a run, the worst mistakes of an evaluation.
#include <string>
#include <vector>

#include "app/report/plot/drawing.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/transform.h"

namespace mxtrain::report {

struct SheetImage {
  io::Image image;
  std::vector<std::string> lines;
};
// At most a few dozen pictures can be looked at; all that are given are drawn. Pictures of one size; small ones are enlarged.
plot::Drawing DrawSheet(const std::string& title, const std::vector<SheetImage>& pictures);

// Makes pictures of a net's input again: what `normalize` (the last of the transforms) did is undone.
class ImageReader {
 public:
  explicit ImageReader(const std::vector<io::TransformSpec>& transforms);
  // Whether an input is of pictures: [N, 1 or 3, H, W].
  static bool IsImage(const DataDesc& input);
  // `planes`: [C, H, W] of one example.
  io::Image Read(const float* planes, const TShape& batch_shape) const;

 private:
  std::vector<double> mean_{0}, std_{1};  // one number, or one per channel
};

// The first batch of a run, as training gets it, as FOLDER/train_batch.png (train_batch_INPUT.png where several inputs are pictures), at
// most kMostOfSheet pictures; nothing where no input is of pictures. Resets the iterator, which the run does again. Throws kFileSystem, and
// what the iterator throws.
inline constexpr int64_t kMostOfSheet = 32;
void SaveFirstBatch(const std::string& folder, DataIter& train, const ImageReader& reader, const std::vector<std::string>& class_names);

}  // namespace mxtrain::report
