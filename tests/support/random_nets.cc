// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_nets.h"

#include <cstdlib>
#include <random>
#include <set>

namespace mxtrain::test {
namespace {

constexpr int kNetBatch = 3, kNetSide = 5;

// An array of the net: [3, channels], or [3, channels, 5, 5].
struct Array {
  Symbol symbol;
  bool image = false;
  int channels = 0;
  bool read = false;
  bool made = false;  // by an operator: may be a head
};

class NetGenerator {
 public:
  NetGenerator(const OperatorRegistry& registry, unsigned seed, bool differentiable)
      : registry_(registry), random_(seed), differentiable_(differentiable) {}

  SmallNet Make(const std::string& name) {
    arrays_.push_back({Symbol::Variable("data"), true, 2});
    arrays_.push_back({Symbol::Variable("row"), false, 4});
    for (int layers = 4 + Below(16); layers > 0; --layers) AddLayer();
    std::vector<Symbol> features, losses;
    const size_t all = arrays_.size();
    for (size_t i = 0; i < all; ++i) {
      if (!arrays_[i].made || (arrays_[i].read && Below(8) > 0)) continue;
      features.push_back(arrays_[i].symbol);
      losses.push_back(Loss(arrays_[i]));
    }
    SmallNet net{name, Symbol::Group(losses), Symbol::Group(features), {}, labels_, 2};
    for (const std::string& argument : net.features.ListArguments()) {
      if (argument == "data") net.data["data"] = {kNetBatch, 2, kNetSide, kNetSide};
      if (argument == "row") net.data["row"] = {kNetBatch, 4};
    }
    return net;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string Name() { return format("n{}", ++names_); }

  Symbol Apply(const std::string& op, const std::vector<Symbol>& inputs, const Kwargs& kwargs = {},
               const std::map<std::string, Symbol>& named = {}) {
    return Symbol::Create(registry_, op, Name(), kwargs, inputs, named);
  }
  void Add(Symbol symbol, bool image, int channels) {
    arrays_.push_back({std::move(symbol), image, channels, false, true});
  }

  // Recent arrays are read more often, which gives long chains.
  Array& Pick() {
    const size_t n = arrays_.size();
    Array& array =
        arrays_[Below(3) > 0
                    ? n - 1 - static_cast<size_t>(Below(static_cast<int>(std::min<size_t>(n, 3))))
                    : static_cast<size_t>(Below(static_cast<int>(n)))];
    array.read = true;
    return array;
  }
  Array Take() { return Pick(); }
  // Another array of the same shape, sometimes the same one.
  Array Partner(const Array& first) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].image == first.image && arrays_[i].channels == first.channels)
        fitting.push_back(i);
    }
    Array& array = arrays_[fitting[static_cast<size_t>(Below(static_cast<int>(fitting.size())))]];
    array.read = true;
    return array;
  }

  void AddLayer() {
    const Array x = Take();
    switch (Below(x.image ? 14 : 11)) {
      case 0:
      case 1:
        return Unary(x);
      case 2:
      case 3:
        return Binary(x);
      case 4:
        return Sum(x);
      case 5:
        return Slice(x);
      case 6:
        return Join(x);
      case 7:
        return View(x);
      case 8:
        return Dense(x);
      case 9:
        return differentiable_ ? Unary(x)
                               : Add(Apply("BlockGrad", {x.symbol}), x.image, x.channels);
      case 10:
        return differentiable_
                   ? Binary(x)
                   : Add(Apply("Dropout", {x.symbol}, {{"p", "0.3"}}), x.image, x.channels);
      case 11:
        return Convolve(x);
      case 12:
        return Add(
            Apply(
                "Pooling", {x.symbol},
                {{"pool_type", Below(2) ? "avg" : "max"}, {"kernel", "(3, 3)"}, {"pad", "(1, 1)"}}),
            true, x.channels);
      default:
        return Normalize(x);
    }
  }

  void Unary(const Array& x) {
    static const char* const kSimple[] = {"tanh", "sigmoid", "sin", "negative", "arctan"};
    static const char* const kActivations[] = {"tanh", "sigmoid", "softrelu", "relu"};
    const int n = Below(9);
    Add(n < 5 ? Apply(kSimple[n], {x.symbol})
              : Apply("Activation", {x.symbol}, {{"act_type", kActivations[n - 5]}}),
        x.image, x.channels);
  }
  void Binary(const Array& x) {
    static const char* const kOps[] = {"elemwise_add", "elemwise_sub", "elemwise_mul",
                                       "elemwise_add"};
    const Array y = Partner(x);
    Symbol result = Apply(kOps[Below(4)], {x.symbol, y.symbol});
    Add(Apply("tanh", {result}), x.image, x.channels);  // keeps numbers small
    if (Below(3) == 0) Add(std::move(result), x.image, x.channels);
  }
  void Sum(const Array& x) {
    const Symbol y = Partner(x).symbol, z = Partner(x).symbol;
    Add(Apply("ElementWiseSum", {x.symbol, y, z}, {{"num_args", "3"}}), x.image, x.channels);
  }
  void Slice(const Array& x) {
    if (x.channels % 2 != 0) return Unary(x);
    const Symbol parts = Apply("SliceChannel", {x.symbol}, {{"num_outputs", "2"}});
    for (int i = 0; i < 2; ++i) Add(parts[i], x.image, x.channels / 2);
  }
  void Join(const Array& x) {
    const Array y = Partner(x);
    if (x.channels > 8) return Unary(x);
    Add(Apply("Concat", {x.symbol, y.symbol}, {{"num_args", "2"}}), x.image, 2 * x.channels);
  }
  void View(const Array& x) {
    if (x.image) return Add(Apply("Flatten", {x.symbol}), false, x.channels * kNetSide * kNetSide);
    Add(Apply("Reshape", {x.symbol}, {{"shape", "(0, -1)"}}), false, x.channels);
  }
  void Dense(const Array& x) {
    const int hidden = 2 * (1 + Below(3)),
              width = x.image ? x.channels * kNetSide * kNetSide : x.channels;
    std::map<std::string, Symbol> named;
    if (Below(2)) named = {{"weight", Weight(format("dense_{}_{}", hidden, width))}};
    Add(Apply("FullyConnected", {x.symbol}, {{"num_hidden", std::to_string(hidden)}}, named), false,
        hidden);
  }
  void Convolve(const Array& x) {
    const int filters = 1 + Below(4), kernel = Below(2) ? 3 : 1, pad = kernel / 2;
    std::map<std::string, Symbol> named;
    if (Below(2))
      named = {{"weight", Weight(format("conv_{}_{}_{}", filters, x.channels, kernel))}};
    const Kwargs kwargs{{"num_filter", std::to_string(filters)},
                        {"kernel", format("({}, {})", kernel, kernel)},
                        {"pad", format("({}, {})", pad, pad)}};
    Add(Apply("Convolution", {x.symbol}, kwargs, named), true, filters);
  }
  void Normalize(const Array& x) {
    Symbol result = Apply("BatchNorm", {x.symbol}, {{"fix_gamma", "False"}, {"eps", "0.01"}});
    if (Below(2)) result = Apply("Activation", {result}, {{"act_type", "relu"}});
    Add(std::move(result), true, x.channels);
  }
  // One variable for all users of weights of this shape.
  Symbol Weight(const std::string& shape) {
    return weights_.try_emplace(shape, Symbol::Variable("shared_" + shape)).first->second;
  }

  Symbol Loss(const Array& x) {
    const int kind = x.image ? 0 : x.channels < 2 ? Below(2) : Below(3);
    if (kind == 0) return Apply("MakeLoss", {Apply("square", {x.symbol})}, {{"grad_scale", "0.5"}});
    const Symbol loss = Apply(kind == 1 ? "LinearRegressionOutput" : "SoftmaxOutput", {x.symbol});
    labels_[loss.Name() + "_label"] = kind == 1 ? TShape{kNetBatch, x.channels} : TShape{kNetBatch};
    return loss;
  }

  const OperatorRegistry& registry_;
  std::mt19937 random_;
  const bool differentiable_;
  int names_ = 0;
  std::vector<Array> arrays_;
  std::map<std::string, Symbol> weights_;
  std::map<std::string, TShape> labels_;
};

}  // namespace

SmallNet RandomNet(const OperatorRegistry& registry, unsigned seed, bool differentiable) {
  return NetGenerator(registry, seed, differentiable).Make(format("random {}", seed));
}

unsigned NumRandomNets(unsigned otherwise) {
  const char* text = std::getenv("MXTRAIN_RANDOM_NETS");
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

}  // namespace mxtrain::test
