// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "mxtrain/initializer/internal/initializers.h"

namespace mxtrain {
namespace {

// The kernel of a Deconvolution for bilinear interpolation; shape (channels, 1, height, width).
class Bilinear final : public Initializer {
 public:
  void Initialize(const std::string& name, uint64_t, NDArray* array) const override {
    const TShape& shape = array->shape();
    if (shape.ndim() != 4) {
      Throw(ErrorKind::kConfig,
            "bilinear needs an array of four dimensions (channels, 1, height, width); '{}' has "
            "shape {}",
            name, shape.ToString());
    }
    const int64_t height = shape[2], width = shape[3];
    const int64_t half = (width + 1) / 2;
    const auto factor = static_cast<double>(half);
    const double centre = (2 * factor - 1 - std::fmod(factor, 2)) / (2 * factor);
    InitializeElements(name, array, [=](int64_t i) {
      const auto x = static_cast<double>(i % width), y = static_cast<double>(i / width % height);
      return static_cast<float>((1 - std::abs(x / factor - centre)) *
                                (1 - std::abs(y / factor - centre)));
    });
  }
};

}  // namespace

std::unique_ptr<Initializer> NewBilinear(const Kwargs& kwargs) {
  NoParam().Init(kwargs, "initializer bilinear");
  return std::make_unique<Bilinear>();
}

}  // namespace mxtrain
