// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/class_map.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

struct MeanIouParam : Parameter<MeanIouParam> {
  int ignore_label;
  static void Declare(Fields<MeanIouParam>& f) {
    f.Add("ignore_label", &MeanIouParam::ignore_label)
        .Default(-1)
        .Help("pixels with this label do not count");
  }
};

// Intersection over union, tp / (tp + fp + fn), of each class over all pixels of the data set; the
// mean over classes that are labelled or predicted.
class MeanIou final : public ClassCountMetric {
 public:
  explicit MeanIou(const MeanIouParam& param) : ClassCountMetric("mean_iou"), param_(param) {}
  double value() const override {
    double sum = 0;
    int64_t classes = 0;
    for (const Counts& n : counts_) {
      if (n.none()) continue;
      sum += n.Iou();
      ++classes;
    }
    return classes > 0 ? sum / static_cast<double>(classes) : kUndefined;
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const TShape& shape = pred.shape;
    if (shape.ndim() < 2 || shape[1] < 2 || label.shape.Size() * shape[1] != shape.Size()) {
      Throw(ErrorKind::kConfig,
            "metric mean_iou: labels {} do not fit an output {}; it takes a class for each pixel "
            "(N, H, W) for scores (N, classes, H, W)",
            label.shape.ToString(), shape.ToString());
    }
    const int64_t classes = shape[1];
    const auto pixels = static_cast<size_t>(shape.Product(2, shape.ndim()));
    counts_.resize(static_cast<size_t>(classes));
    guesses_.resize(pixels);
    for (int64_t i = 0; i < count; ++i) {
      const size_t example = static_cast<size_t>(i) * pixels;
      BestClasses({pred.dptr<float>() + example * static_cast<size_t>(classes),
                   pixels * static_cast<size_t>(classes)},
                  classes, guesses_);
      AddExample(label.dptr<float>() + example, i);
    }
  }

 private:
  void AddExample(const float* labels, int64_t row) {
    const auto ignored = static_cast<float>(param_.ignore_label);
    const auto classes = static_cast<float>(counts_.size());
    const double weight = WeightOf(row);
    for (size_t i = 0; i < guesses_.size(); ++i) {
      const float wanted = labels[i];
      if (wanted == ignored) continue;
      if (!(wanted >= 0 && wanted < classes)) {
        Throw(
            ErrorKind::kData,
            "metric mean_iou: label {} in row {} is out of range for the {} classes of the output",
            wanted, row, counts_.size());
      }
      const auto k = static_cast<size_t>(wanted);
      counts_[k].labelled += weight;
      if (guesses_[i] < 0) continue;
      counts_[static_cast<size_t>(guesses_[i])].guessed += weight;
      if (guesses_[i] == static_cast<int32_t>(k)) counts_[k].right += weight;
    }
  }

  const MeanIouParam param_;
  std::vector<int32_t> guesses_;  // of an example
};

}  // namespace

std::unique_ptr<Metric> NewMeanIou(const Kwargs& kwargs) {
  MeanIouParam param;
  param.Init(kwargs, "metric mean_iou");
  return std::make_unique<MeanIou>(param);
}
std::vector<FieldInfo> DescribeMeanIou() {
  return MeanIouParam::Describe();
}

}  // namespace mxtrain
