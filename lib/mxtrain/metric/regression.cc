#include <cmath>

#include "mxtrain/base/error.h"
#include "mxtrain/metric/metrics.h"

namespace mxtrain {
namespace {

double Square(double difference) {
  return difference * difference;
}
double Absolute(double difference) {
  return std::abs(difference);
}

// Mean over examples of the mean of `Loss` over an example's elements.
template <double (*Loss)(double)>
class Regression final : public Metric {
 public:
  explicit Regression(std::string name) : Metric(std::move(name)) {}
  bool higher_is_better() const override { return false; }

 protected:
  void Add(const TBlob& label, const TBlob& pred, int64_t count) override {
    const int64_t width = pred.shape.Product(1, pred.shape.ndim());
    if (label.Size() != pred.Size()) {
      Throw(ErrorKind::kConfig, "metric {}: labels {} and output {} hold different numbers of elements", name(), label.shape.ToString(),
            pred.shape.ToString());
    }
    if (width == 0) return;
    double sum = 0;
    for (int64_t i = 0; i < count * width; ++i) {
      sum += Loss(static_cast<double>(label.dptr<float>()[i]) - static_cast<double>(pred.dptr<float>()[i]));
    }
    sum_ += sum / static_cast<double>(width);
    weight_ += static_cast<double>(count);
  }
};

}  // namespace

std::unique_ptr<Metric> NewMse(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric mse");
  return std::make_unique<Regression<Square>>("mse");
}
std::unique_ptr<Metric> NewMae(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "metric mae");
  return std::make_unique<Regression<Absolute>>("mae");
}

}  // namespace mxtrain
