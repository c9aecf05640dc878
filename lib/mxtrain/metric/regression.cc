// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/internal/metrics.h"

namespace mxtrain {
namespace {

double Square(double difference) {
  return difference * difference;
}
double Absolute(double difference) {
  return std::abs(difference);
}

void CheckSizes(const std::string& metric, const TBlob& label, const TBlob& pred) {
  if (label.Size() == pred.Size()) return;
  Throw(ErrorKind::kConfig, "metric {}: labels {} and output {} hold different numbers of elements",
        metric, label.shape.ToString(), pred.shape.ToString());
}

// Mean over examples of the mean of `Loss` over an example's elements.
template <double (*Loss)(double)>
class Regression : public MeanMetric {
 public:
  explicit Regression(std::string name) : MeanMetric(std::move(name)) {}
  bool higher_is_better() const override { return false; }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const int64_t width = pred.shape.Product(1, pred.shape.ndim());
    CheckSizes(name(), label, pred);
    if (width == 0) return;
    double sum = 0;
    for (int64_t n = 0; n < count; ++n) {
      const double weight = WeightOf(n);
      if (weight == 0) continue;
      for (int64_t i = n * width; i < (n + 1) * width; ++i) {
        sum += weight * Loss(static_cast<double>(label.dptr<float>()[i]) -
                             static_cast<double>(pred.dptr<float>()[i]));
      }
      weight_ += weight;
    }
    sum_ += sum / static_cast<double>(width);
  }
};

class Rmse final : public Regression<Square> {
 public:
  Rmse() : Regression("rmse") {}
  double value() const override { return std::sqrt(Regression::value()); }
};

// Peak signal-to-noise ratio in dB, of values whose peak is 1, such as the pixels of an image
// target: that of the mean squared error over all examples.
class Psnr final : public Regression<Square> {
 public:
  Psnr() : Regression("psnr") {}
  bool higher_is_better() const override { return true; }
  double value() const override { return -10 * std::log10(Regression::value()); }
};

// The coefficient of determination, 1 - sum (y - p)^2 / sum (y - mean y)^2, per element of an
// example, averaged. Elements with constant labels do not count.
class R2 final : public Metric {
 public:
  R2() : Metric("r2") {}
  bool higher_is_better() const override { return true; }
  bool takes_weights() const override { return true; }
  void Reset() override { columns_.clear(); }
  double value() const override {
    double sum = 0;
    int64_t counted = 0;
    for (const Column& c : columns_) {
      if (!(c.spread > 0)) continue;
      sum += 1 - c.error / c.spread;
      ++counted;
    }
    return counted > 0 ? sum / static_cast<double>(counted) : kUndefined;
  }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    CheckSizes(name(), label, pred);
    const auto width = static_cast<size_t>(pred.shape.Product(1, pred.shape.ndim()));
    columns_.resize(width);
    const float *y = label.dptr<float>(), *p = pred.dptr<float>();
    for (size_t i = 0; i < static_cast<size_t>(count) * width; ++i) {
      const double weight = WeightOf(static_cast<int64_t>(i / width));
      if (weight == 0) continue;
      Column& c = columns_[i % width];
      // Welford's update of the mean and of the sum of squared deviations, with weights (West,
      // "Updating mean and variance estimates: an improved method", 1979).
      const double from_mean = static_cast<double>(y[i]) - c.mean;
      c.count += weight;
      c.mean += weight * from_mean / c.count;
      c.spread += weight * from_mean * (static_cast<double>(y[i]) - c.mean);
      c.error += weight * Square(static_cast<double>(y[i]) - static_cast<double>(p[i]));
    }
  }
  std::vector<double> Sums() const override {
    std::vector<double> sums;
    for (const Column& c : columns_) sums.insert(sums.end(), {c.count, c.mean, c.spread, c.error});
    return sums;
  }
  bool SetSums(const std::vector<double>& sums) override {
    if (sums.size() % 4 != 0) return false;
    columns_.clear();
    for (size_t i = 0; i < sums.size(); i += 4)
      columns_.push_back({sums[i], sums[i + 1], sums[i + 2], sums[i + 3]});
    return true;
  }
  bool AddSums(const std::vector<double>& sums) override {
    if (columns_.empty()) return SetSums(sums);
    if (sums.empty()) return true;
    if (sums.size() != 4 * columns_.size()) return false;
    for (size_t i = 0; i < columns_.size(); ++i)
      columns_[i].Add({sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]});
    return true;
  }

 private:
  struct Column {
    double count = 0, mean = 0, spread = 0, error = 0;
    // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    // variances", 1979.
    void Add(const Column& other) {
      if (other.count == 0) return;
      const double all = count + other.count, share = other.count / all,
                   between = other.mean - mean;
      spread += other.spread + Square(between) * count * share;
      mean += between * share;
      error += other.error;
      count = all;
    }
  };
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<Metric> NewRmse(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric rmse");
  return std::make_unique<Rmse>();
}
std::unique_ptr<Metric> NewPsnr(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric psnr");
  return std::make_unique<Psnr>();
}
std::unique_ptr<Metric> NewR2(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric r2");
  return std::make_unique<R2>();
}
std::unique_ptr<Metric> NewMse(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric mse");
  return std::make_unique<Regression<Square>>("mse");
}
std::unique_ptr<Metric> NewMae(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric mae");
  return std::make_unique<Regression<Absolute>>("mae");
}

}  // namespace mxtrain
