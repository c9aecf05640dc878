// SPDX-License-Identifier: Apache-2.0
// Constants that are computed with.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/onnx/internal/fold.h"

namespace mxtrain::onnx {
namespace {

constexpr const char* kTooLarge = "a number is too large";

bool IsTruth(std::string_view op) {
  constexpr std::string_view kOps[] = {
      "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

// The types of 16 bits are made of a float.
template <typename Stored, typename From>
Stored As(From value) {
  if constexpr (std::is_arithmetic_v<Stored>) {
    return static_cast<Stored>(value);
  } else {
    return Stored(static_cast<float>(value));
  }
}

template <typename Stored, typename From>
Tensor StoredAs(ElementType type, std::vector<int64_t> dims, const std::vector<From>& values) {
  Tensor out{type, std::move(dims), std::string(values.size() * sizeof(Stored), '\0')};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = As<Stored>(values[i]);
    std::memcpy(out.bytes.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
  return out;
}

// Without the bits that the type does not have.
Tensor Wrapped(ElementType type, std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return StoredAs<uint8_t>(type, std::move(dims), values);
    case ElementType::kInt8:
      return StoredAs<int8_t>(type, std::move(dims), values);
    case ElementType::kUint16:
      return StoredAs<uint16_t>(type, std::move(dims), values);
    case ElementType::kInt16:
      return StoredAs<int16_t>(type, std::move(dims), values);
    case ElementType::kUint32:
      return StoredAs<uint32_t>(type, std::move(dims), values);
    case ElementType::kInt32:
      return StoredAs<int32_t>(type, std::move(dims), values);
    case ElementType::kUint64:
    case ElementType::kInt64:
      return StoredAs<int64_t>(type, std::move(dims), values);
    default:
      Throw(ErrorKind::kData, "type {} has no whole numbers", NameOf(type));
  }
}

}  // namespace

bool IsWhole(ElementType type) {
  return type != ElementType::kFloat && type != ElementType::kDouble &&
         type != ElementType::kFloat16 && type != ElementType::kBfloat16;
}

Tensor OfWhole(ElementType type, std::vector<int64_t> dims, const std::vector<int64_t>& values) {
  Tensor out = Wrapped(type, std::move(dims), values);
  if (SizeOf(type) < 8) Require(out.ToInts() == values, kTooLarge);
  return out;
}

Tensor OfReal(ElementType type, std::vector<int64_t> dims, const std::vector<double>& values) {
  switch (type) {
    case ElementType::kFloat:
      return StoredAs<float>(type, std::move(dims), values);
    case ElementType::kDouble:
      return StoredAs<double>(type, std::move(dims), values);
    case ElementType::kFloat16:
      return StoredAs<float16>(type, std::move(dims), values);
    case ElementType::kBfloat16:
      return StoredAs<bfloat16>(type, std::move(dims), values);
    default:
      break;
  }
  std::vector<int64_t> whole(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    Require(std::abs(values[i]) < 0x1p63, "a number is too large for an integer");
    whole[i] = static_cast<int64_t>(values[i]);
  }
  return OfWhole(type, std::move(dims), whole);
}

namespace {

// --- types ---

Tensor CastTo(const Tensor& from, ElementType to) {
  if (to == from.type) return from;
  Require(SizeOf(to) > 0, "its type is not one of numbers");
  if (!IsWhole(to)) return OfReal(to, from.dims, from.Doubles());
  if (to == ElementType::kBool) {
    std::vector<int64_t> truth;
    for (const double value : from.Doubles()) truth.push_back(value != 0);
    return Wrapped(to, from.dims, truth);
  }
  if (IsWhole(from.type)) return Wrapped(to, from.dims, from.ToInts());
  return OfReal(to, from.dims, from.Doubles());
}

std::optional<Tensor> Cast(const Folding& f) {
  return CastTo(f.At(0), static_cast<ElementType>(f.IntOr("to", 0)));
}
std::optional<Tensor> CastLike(const Folding& f) {
  return CastTo(f.At(0), f.At(1).type);
}

// --- functions of two numbers ---

using WholeFn = int64_t (*)(int64_t a, int64_t b);
using RealFn = double (*)(double a, double b);

int64_t Quotient(int64_t a, int64_t b) {
  Require(b != 0 && !(a == INT64_MIN && b == -1), "a division by zero");
  return a / b;
}
// With the sign of the dividend, and with that of the divisor.
int64_t Rest(int64_t a, int64_t b) {
  Require(b != 0 && !(a == INT64_MIN && b == -1), "a division by zero");
  return a % b;
}
int64_t Modulus(int64_t a, int64_t b) {
  const int64_t rest = Rest(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <bool (*kOverflows)(int64_t, int64_t, int64_t*)>
int64_t Checked(int64_t a, int64_t b) {
  int64_t result = 0;
  Require(!kOverflows(a, b, &result), kTooLarge);
  return result;
}
bool Add(int64_t a, int64_t b, int64_t* sum) {
  return __builtin_add_overflow(a, b, sum);
}
bool Subtract(int64_t a, int64_t b, int64_t* difference) {
  return __builtin_sub_overflow(a, b, difference);
}
bool Multiply(int64_t a, int64_t b, int64_t* product) {
  return __builtin_mul_overflow(a, b, product);
}
// Of integers: an integer.
int64_t WholePower(int64_t a, int64_t b) {
  const double power = std::pow(static_cast<double>(a), static_cast<double>(b));
  Require(std::abs(power) <= 0x1p53, kTooLarge);
  return static_cast<int64_t>(power);
}

struct BinaryFns {
  WholeFn whole;
  RealFn real;  // null: not of real numbers
};

const BinaryFns& FnsOf(const std::string& op) {
  static const std::map<std::string, BinaryFns> fns = {
      {"Add", {Checked<Add>, [](double a, double b) { return a + b; }}},
      {"Sum", {Checked<Add>, [](double a, double b) { return a + b; }}},
      {"Sub", {Checked<Subtract>, [](double a, double b) { return a - b; }}},
      {"Mul", {Checked<Multiply>, [](double a, double b) { return a * b; }}},
      {"Div", {Quotient, [](double a, double b) { return a / b; }}},
      // Of real numbers ONNX has the remainder with the sign of the dividend alone.
      {"Mod", {Modulus, nullptr}},
      {"fmod", {Rest, [](double a, double b) { return std::fmod(a, b); }}},
      {"Pow", {WholePower, [](double a, double b) { return std::pow(a, b); }}},
      {"Max",
       {[](int64_t a, int64_t b) { return std::max(a, b); },
        [](double a, double b) { return std::isnan(a) || a > b ? a : b; }}},
      {"Min",
       {[](int64_t a, int64_t b) { return std::min(a, b); },
        [](double a, double b) { return std::isnan(a) || a < b ? a : b; }}},
      {"Equal",
       {[](int64_t a, int64_t b) -> int64_t { return a == b; },
        [](double a, double b) -> double { return a == b; }}},
      {"Greater",
       {[](int64_t a, int64_t b) -> int64_t { return a > b; },
        [](double a, double b) -> double { return a > b; }}},
      {"GreaterOrEqual",
       {[](int64_t a, int64_t b) -> int64_t { return a >= b; },
        [](double a, double b) -> double { return a >= b; }}},
      {"Less",
       {[](int64_t a, int64_t b) -> int64_t { return a < b; },
        [](double a, double b) -> double { return a < b; }}},
      {"LessOrEqual",
       {[](int64_t a, int64_t b) -> int64_t { return a <= b; },
        [](double a, double b) -> double { return a <= b; }}},
      {"And", {[](int64_t a, int64_t b) -> int64_t { return a != 0 && b != 0; }, nullptr}},
      {"Or", {[](int64_t a, int64_t b) -> int64_t { return a != 0 || b != 0; }, nullptr}},
      {"Xor", {[](int64_t a, int64_t b) -> int64_t { return (a != 0) != (b != 0); }, nullptr}},
  };
  return fns.at(op);
}

std::optional<Tensor> Pair(const Folding& f, const Tensor& first, const Tensor& second) {
  const bool fmod = f.node.op == "Mod" && f.IntOr("fmod", 0) != 0;
  const BinaryFns& fns = FnsOf(fmod ? "fmod" : f.node.op);
  const std::vector<int64_t> dims = Broadcast(first.dims, second.dims);
  // Only an exponent may be of another type.
  const ElementType type = IsTruth(f.node.op) ? ElementType::kBool : first.type;
  f.CheckRoom(dims, type);
  const Tensor a = ExpandTo(first, dims), b = ExpandTo(second, dims);
  if (IsWhole(a.type) && IsWhole(b.type)) {
    std::vector<int64_t> x = a.ToInts();
    const std::vector<int64_t> y = b.ToInts();
    for (size_t i = 0; i < x.size(); ++i) x[i] = fns.whole(x[i], y[i]);
    return OfWhole(type, dims, x);
  }
  if (!fns.real) return std::nullopt;
  std::vector<double> x = a.Doubles();
  const std::vector<double> y = b.Doubles();
  for (size_t i = 0; i < x.size(); ++i) x[i] = fns.real(x[i], y[i]);
  return OfReal(type, dims, x);
}

std::optional<Tensor> Binary(const Folding& f) {
  Require(f.in.size() == 2, "it does not have two inputs");
  return Pair(f, f.At(0), f.At(1));
}

// Of any number of inputs.
std::optional<Tensor> Several(const Folding& f) {
  Tensor result = f.At(0);
  for (size_t i = 1; i < f.in.size(); ++i) {
    std::optional<Tensor> next = Pair(f, result, f.At(i));
    if (!next) return std::nullopt;
    result = std::move(*next);
  }
  return result;
}

// --- functions of one number ---

double RealUnary(const std::string& op, double x) {
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Exp") return std::exp(x);
  if (op == "Log") return std::log(x);
  if (op == "Sin") return std::sin(x);
  if (op == "Cos") return std::cos(x);
  if (op == "Abs") return std::abs(x);
  if (op == "Neg") return -x;
  return 1 / x;
}

std::optional<Tensor> Unary(const Folding& f) {
  const Tensor& data = f.At(0);
  f.CheckRoom(data.dims, data.type);
  const std::string& op = f.node.op;
  if (!IsWhole(data.type)) {
    std::vector<double> values = data.Doubles();
    for (double& x : values) x = RealUnary(op, x);
    return OfReal(data.type, data.dims, values);
  }
  if (op != "Abs" && op != "Neg") return std::nullopt;
  std::vector<int64_t> values = data.ToInts();
  for (int64_t& x : values) {
    Require(x != INT64_MIN, kTooLarge);
    x = op == "Abs" && x >= 0 ? x : -x;
  }
  return OfWhole(data.type, data.dims, values);
}

std::optional<Tensor> Not(const Folding& f) {
  std::vector<int64_t> values;
  for (const double x : f.At(0).Doubles()) values.push_back(x == 0);
  return Wrapped(ElementType::kBool, f.At(0).dims, values);
}

// A bound as an input or, before opset 11, an attribute.
std::optional<Tensor> BoundOf(const Folding& f, size_t input, const char* name) {
  if (f.Has(input)) {
    Require(f.in[input]->Size() == 1, "a bound is not one number");
    return *f.in[input];
  }
  if (!f.node.attributes.contains(name)) return std::nullopt;
  return Tensor::Scalar(f.FloatOr(name, 0));
}

// A least element above the largest one leaves the largest one.
std::optional<Tensor> Clip(const Folding& f) {
  const Tensor& data = f.At(0);
  f.CheckRoom(data.dims, data.type);
  const std::optional<Tensor> least = BoundOf(f, 1, "min"), most = BoundOf(f, 2, "max");
  if (IsWhole(data.type)) {
    std::vector<int64_t> values = data.ToInts();
    for (int64_t& x : values) {
      if (least) x = std::max(x, least->ToInts()[0]);
      if (most) x = std::min(x, most->ToInts()[0]);
    }
    return OfWhole(data.type, data.dims, values);
  }
  std::vector<double> values = data.Doubles();
  const double low = least ? least->Doubles()[0] : -std::numeric_limits<double>::infinity(),
               high = most ? most->Doubles()[0] : std::numeric_limits<double>::infinity();
  for (double& x : values) {
    if (x < low) x = low;
    if (x > high) x = high;
  }
  return OfReal(data.type, data.dims, values);
}

// --- over axes ---

struct Axes {
  std::vector<int64_t> kept;   // lengths, 1 of what is reduced
  std::vector<int64_t> steps;  // of an axis in what is left; 0: reduced
};

// Nothing for one that reduces no axis.
std::optional<Axes> ReducedAxes(const Folding& f) {
  const std::vector<int64_t>& dims = f.At(0).dims;
  std::vector<bool> reduced(dims.size(), false);
  const std::vector<int64_t> given = f.Ints(1, "axes").value_or(std::vector<int64_t>());
  if (given.empty() && f.IntOr("noop_with_empty_axes", 0) != 0) return std::nullopt;
  for (const int64_t axis : given) reduced[AxisOf(axis, dims.size())] = true;
  if (given.empty()) reduced.assign(dims.size(), true);
  Axes axes{dims, {}};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i]) axes.kept[i] = 1;
  }
  axes.steps = StridesOf(axes.kept);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (reduced[i]) axes.steps[i] = 0;
  }
  return axes;
}

// Each element of `values`, one after the other, into that of the result it belongs to.
template <typename T, typename Fn>
std::vector<T> Reduced(const std::vector<T>& values, const std::vector<int64_t>& dims,
                       const Axes& axes, T first, Fn fn) {
  std::vector<T> result(static_cast<size_t>(Count(axes.kept)), first);
  std::vector<int64_t> index(dims.size(), 0);
  for (const T& value : values) {
    int64_t to = 0;
    for (size_t i = 0; i < dims.size(); ++i) to += index[i] * axes.steps[i];
    T& sum = result[static_cast<size_t>(to)];
    sum = fn(sum, value);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

std::optional<Tensor> Reduce(const Folding& f) {
  const Tensor& data = f.At(0);
  const std::optional<Axes> axes = ReducedAxes(f);
  if (!axes) return data;
  const std::string& op = f.node.op;
  const bool mean = op == "ReduceMean", largest = op == "ReduceMax", least = op == "ReduceMin",
             product = op == "ReduceProd";
  const BinaryFns& fns = FnsOf(largest ? "Max" : least ? "Min" : product ? "Mul" : "Add");
  const int64_t count = data.Size() / std::max<int64_t>(1, Count(axes->kept));
  if (count == 0 && (mean || largest || least)) return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < data.dims.size(); ++i) {
    if (f.IntOr("keepdims", 1) != 0 || axes->steps[i] != 0 || data.dims[i] == 0)
      dims.push_back(axes->kept[i]);
  }
  if (IsWhole(data.type)) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> sums = Reduced<int64_t>(data.ToInts(), data.dims, *axes,
                                                 largest   ? -kMost - 1
                                                 : least   ? kMost
                                                 : product ? 1
                                                           : 0,
                                                 fns.whole);
    for (int64_t& sum : sums) sum /= mean ? count : 1;
    return OfWhole(data.type, dims, sums);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> sums = Reduced<double>(data.Doubles(), data.dims, *axes,
                                             largest   ? -kInfinity
                                             : least   ? kInfinity
                                             : product ? 1
                                                       : 0,
                                             fns.real);
  for (double& sum : sums) sum /= mean ? static_cast<double>(count) : 1;
  return OfReal(data.type, dims, sums);
}

std::vector<double> Vector(const Folding& f, size_t input, int64_t channels) {
  Require(f.At(input).Size() == channels, "an array is not one number per channel");
  return f.in[input]->Doubles();
}

// With the statistics of the data themselves, as weights are standardized. The running ones, which
// come out too, are mixed with those that go in.
std::vector<Tensor> BatchNormalization(const Folding& f) {
  const Tensor& data = f.At(0);
  if (f.IntOr("training_mode", 0) == 0 || data.dims.size() < 2 || data.Size() == 0) return {};
  f.CheckRoom(data.dims, data.type);
  const int64_t channels = data.dims[1], inner = Count({data.dims.begin() + 2, data.dims.end()});
  const double per_channel = static_cast<double>(data.Size() / channels),
               eps = f.FloatOr("epsilon", 1e-5f), keep = f.FloatOr("momentum", 0.9f);
  std::vector<double> values = data.Doubles(), mean(static_cast<size_t>(channels), 0),
                      variance = mean;
  const auto channel_of = [&](size_t i) {
    return static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
  };
  for (size_t i = 0; i < values.size(); ++i) mean[channel_of(i)] += values[i] / per_channel;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - mean[channel_of(i)];
    variance[channel_of(i)] += off * off / per_channel;
  }
  const std::vector<double> scale = Vector(f, 1, channels), bias = Vector(f, 2, channels);
  std::vector<double> means = Vector(f, 3, channels), variances = Vector(f, 4, channels);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = channel_of(i);
    values[i] = (values[i] - mean[c]) / std::sqrt(variance[c] + eps) * scale[c] + bias[c];
  }
  for (size_t c = 0; c < mean.size(); ++c) {
    means[c] = keep * means[c] + (1 - keep) * mean[c];
    variances[c] = keep * variances[c] + (1 - keep) * variance[c];
  }
  return {OfReal(data.type, data.dims, values), OfReal(f.in[3]->type, {channels}, means),
          OfReal(f.in[4]->type, {channels}, variances)};
}

// --- ranges ---

std::optional<Tensor> Range(const Folding& f) {
  for (size_t i = 0; i < 3; ++i) Require(f.At(i).Size() == 1, "a bound is not one number");
  const ElementType type = f.in[0]->type;
  const int64_t most = f.most_bytes / 8;
  if (IsWhole(type) && IsWhole(f.in[1]->type) && IsWhole(f.in[2]->type)) {
    const int64_t start = f.in[0]->ToInts()[0], limit = f.in[1]->ToInts()[0],
                  delta = f.in[2]->ToInts()[0];
    Require(delta != 0, "a range has a step of 0");
    std::vector<int64_t> values;
    int64_t next = start;
    bool overflow = false;  // the end of all numbers, and so of the range
    const double count =
        (static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta);
    Require(count < static_cast<double>(most), "a range is too long");
    while (!overflow && (delta > 0 ? next < limit : next > limit)) {
      values.push_back(next);
      overflow = __builtin_add_overflow(next, delta, &next);
    }
    return OfWhole(type, {static_cast<int64_t>(values.size())}, values);
  }
  const double start = f.in[0]->Doubles()[0], limit = f.in[1]->Doubles()[0],
               delta = f.in[2]->Doubles()[0];
  Require(delta != 0, "a range has a step of 0");
  const double count = std::ceil((limit - start) / delta);
  Require(count <= static_cast<double>(most), "a range is too long");
  std::vector<double> values;
  for (int64_t i = 0; static_cast<double>(i) < count; ++i)
    values.push_back(start + static_cast<double>(i) * delta);
  return OfReal(type, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

std::vector<FoldEntry> ArithmeticFolds() {
  std::vector<FoldEntry> entries = {
      {"Cast", One<Cast>}, {"CastLike", One<CastLike>}, {"Not", One<Not>},
      {"Clip", One<Clip>}, {"Range", One<Range>},       {"BatchNormalization", BatchNormalization},
  };
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Equal", "Greater",
                         "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"})
    entries.push_back({op, One<Binary>});
  for (const char* op : {"Max", "Min", "Sum"}) entries.push_back({op, One<Several>});
  for (const char* op :
       {"Sqrt", "Floor", "Ceil", "Exp", "Log", "Sin", "Cos", "Abs", "Neg", "Reciprocal"})
    entries.push_back({op, One<Unary>});
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"})
    entries.push_back({op, One<Reduce>});
  return entries;
}

}  // namespace mxtrain::onnx
