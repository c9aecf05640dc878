// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_image_nets.h"

#include <optional>
#include <random>

namespace mxtrain::test {
namespace {

constexpr int kImageBatch = 2, kImageSide = 6;

// An array [2, channels, side, side].
struct Image {
  Symbol symbol;
  int channels = 0, side = 0;
  bool read = false;
};

class ImageNetGenerator {
 public:
  ImageNetGenerator(const OperatorRegistry& registry, unsigned seed)
      : registry_(registry), random_(seed) {}

  SmallNet Make(const std::string& name) {
    images_.push_back({Symbol::Variable("data"), 3, kImageSide});
    Unit();
    for (int layers = 3 + Below(8); layers > 0; --layers) AddLayer();
    std::vector<Symbol> features, losses;
    for (const Image& image : std::vector<Image>(images_)) {
      if (image.read) continue;
      features.push_back(image.symbol);
      losses.push_back(
          Apply("MakeLoss", {Apply("square", {image.symbol})}, {{"grad_scale", "0.1"}}));
    }
    return {name,
            Symbol::Group(losses),
            Symbol::Group(features),
            {{"data", {kImageBatch, 3, kImageSide, kImageSide}}},
            {},
            0};
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Symbol Apply(const std::string& op, const std::vector<Symbol>& inputs,
               const Kwargs& kwargs = {}) {
    return Symbol::Create(registry_, op, format("n{}", ++names_), kwargs, inputs);
  }

  Image Take() {
    Image& image =
        images_[images_.size() - 1 -
                static_cast<size_t>(Below(static_cast<int>(std::min<size_t>(images_.size(), 3))))];
    image.read = true;
    return image;
  }
  // An array of this shape.
  std::optional<Symbol> Like(int channels, int side) {
    for (size_t i = images_.size(); i-- > 0;) {
      if (images_[i].channels != channels || images_[i].side != side || Below(3) == 0) continue;
      images_[i].read = true;
      return images_[i].symbol;
    }
    return std::nullopt;
  }
  void Add(Symbol symbol, int channels, int side) {
    images_.push_back({std::move(symbol), channels, side});
  }

  void AddLayer() {
    switch (Below(8)) {
      case 0:
        return Join();
      case 1:
        return Pool();
      case 2:
        return Looked();
      case 3: {
        const Image x = Take();
        return Add(Act(Norm(x.symbol)), x.channels, x.side);
      }
      default:
        return Unit();
    }
  }

  Symbol Convolve(const Image& x, int filters) {
    const int kernel = Below(2) ? 3 : 1, pad = kernel / 2;
    return Apply("Convolution", {x.symbol},
                 {{"num_filter", std::to_string(filters)},
                  {"kernel", format("({}, {})", kernel, kernel)},
                  {"pad", format("({}, {})", pad, pad)}});
  }
  Symbol Norm(const Symbol& x) {
    return Apply("BatchNorm", {x},
                 {{"fix_gamma", Below(4) ? "False" : "True"},
                  {"eps", "0.01"},
                  {"use_global_stats", Below(6) ? "False" : "True"}});
  }
  Symbol Act(const Symbol& x) {
    switch (Below(4)) {
      case 0:
        return x;
      case 1:
        return Apply("clip", {x}, {{"a_min", "0"}, {"a_max", "6"}});
      default:
        return Apply("Activation", {x}, {{"act_type", "relu"}});
    }
  }
  Symbol Sum(Symbol a, Symbol b) {
    if (Below(2)) std::swap(a, b);
    return Below(2) ? Apply("elemwise_add", {a, b})
                    : Apply("ElementWiseSum", {a, b}, {{"num_args", "2"}});
  }

  // Convolution, batch norm, optionally a sum with an older array or a second branch, an
  // activation.
  void Unit() {
    const Image x = Take();
    const int filters = Below(3) ? (x.channels == 3 ? 8 : x.channels) : 4 * (1 + Below(5));
    Symbol y = Norm(Convolve(x, filters));
    if (Below(3) == 0) {
      y = Sum(y, Below(2) ? Norm(Convolve(x, filters)) : Convolve(x, filters));
    } else if (const auto other = Like(filters, x.side)) {
      y = Sum(y, *other);
    }
    Add(Act(y), filters, x.side);
  }
  // A batch norm with another reader.
  void Looked() {
    const Image x = Take();
    const Symbol norm = Norm(x.symbol);
    Add(Apply("tanh", {norm}), x.channels, x.side);
    Add(Act(norm), x.channels, x.side);
  }
  void Join() {
    const Image x = Take();
    const auto y = Like(x.channels, x.side);
    if (!y || x.channels > 16) return Unit();
    Add(Apply("Concat", {x.symbol, *y}, {{"num_args", "2"}}), 2 * x.channels, x.side);
  }
  void Pool() {
    const Image x = Take();
    const int stride = x.side > 3 ? 1 + Below(2) : 1;
    Add(Apply("Pooling", {x.symbol},
              {{"pool_type", Below(2) ? "avg" : "max"},
               {"kernel", "(3, 3)"},
               {"pad", "(1, 1)"},
               {"stride", format("({}, {})", stride, stride)}}),
        x.channels, (x.side + 2 - 3) / stride + 1);
  }

  const OperatorRegistry& registry_;
  std::mt19937 random_;
  int names_ = 0;
  std::vector<Image> images_;
};

}  // namespace

SmallNet RandomImageNet(const OperatorRegistry& registry, unsigned seed) {
  return ImageNetGenerator(registry, seed).Make(format("random images {}", seed));
}

}  // namespace mxtrain::test
