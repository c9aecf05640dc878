// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/reshape/reshape.h"

#include <algorithm>
#include <utility>

#include "mxtrain/operator/registry.h"

namespace mxtrain {
namespace {

constexpr int64_t kUnknown = TShape::kUnknown;

std::string Text(const std::vector<int64_t>& codes) {
  return TShape(std::span<const int64_t>(codes)).ToTuple();
}

int64_t Times(int64_t a, int64_t b) {
  return TShape{a, b}.Size();
}

// Processes one axis after the other, in the order in which the codes are matched.
class Matcher {
 public:
  Matcher(std::vector<int64_t> data, const std::vector<int64_t>& codes, bool reverse,
          std::string text)
      : data_(std::move(data)), codes_(codes), text_(std::move(text)), reverse_(reverse) {}

  void Match() {
    while (at_ < codes_.size()) One(codes_[at_++]);
    FillInferred();
  }
  const std::vector<int64_t>& out() const { return out_; }
  const std::vector<std::pair<int, int>>& same() const { return same_; }

 private:
  void One(int64_t code) {
    switch (code) {
      case 0:
        return Keep();
      case -1:
        if (inferred_ >= 0)
          Throw(ErrorKind::kConfig,
                "Reshape: shape = {} has -1 twice; only one axis can be inferred", text_);
        inferred_ = static_cast<int>(out_.size());
        if (next_ < data_.size()) ++next_;
        return Put(kUnknown);
      case -2:
        while (next_ < data_.size()) Keep();
        return;
      case -3: {
        const int64_t first = NextAxis();
        return Put(Times(first, NextAxis()));
      }
      case -4:
        return Split();
      default:
        if (code < 0)
          Throw(ErrorKind::kConfig,
                "Reshape: shape = {} has {}; the codes are 0, -1, -2, -3 and -4", text_, code);
        if (next_ < data_.size()) ++next_;
        return Put(code);
    }
  }

  void Split() {
    const int64_t whole = NextAxis();
    if (at_ + 2 > codes_.size())
      Throw(ErrorKind::kConfig, "Reshape: shape = {}: two lengths must follow -4", text_);
    int64_t a = codes_[at_++], b = codes_[at_++];
    if (a < -1 || b < -1 || a == 0 || b == 0 || (a == -1 && b == -1)) {
      Throw(ErrorKind::kConfig,
            "Reshape: shape = {}: after -4 two lengths are expected; one may be -1", text_);
    }
    if (whole != kUnknown) {
      if (a == -1) a = whole / b;
      if (b == -1) b = whole / a;
      if (Times(a, b) != whole)
        Throw(ErrorKind::kConfig,
              "Reshape: shape = {}: an axis of length {} cannot be split this way", text_, whole);
    }
    Put(reverse_ ? b : a);
    Put(reverse_ ? a : b);
  }

  void Keep() {
    same_.push_back({static_cast<int>(next_), static_cast<int>(out_.size())});
    Put(NextAxis());
  }
  int64_t NextAxis() {
    if (next_ >= data_.size()) {
      Throw(ErrorKind::kConfig, "Reshape: shape = {} needs more axes than the {} of the input",
            text_, data_.size());
    }
    return data_[next_++];
  }
  void Put(int64_t length) { out_.push_back(length); }

  void FillInferred() {
    if (inferred_ < 0) return;
    int64_t size = 1, known = 1;
    for (const int64_t length : data_) size = Times(size, length);
    for (size_t i = 0; i < out_.size(); ++i) {
      if (static_cast<int>(i) != inferred_) known = Times(known, out_[i]);
    }
    if (size == kUnknown || known == kUnknown) return;
    if (known == 0 || size % known != 0) {
      Throw(ErrorKind::kConfig, "Reshape: shape = {} does not divide the {} elements of the input",
            text_, size);
    }
    out_[static_cast<size_t>(inferred_)] = size / known;
  }

  std::vector<int64_t> data_, codes_, out_;
  std::string text_;  // the codes, for errors
  std::vector<std::pair<int, int>> same_;
  bool reverse_;
  size_t at_ = 0, next_ = 0;  // next code and input axis
  int inferred_ = -1;         // output axis of -1
};

// The codes from right to left; the two lengths after a -4 stay after it in order.
std::vector<int64_t> Reversed(const std::vector<int64_t>& codes) {
  std::vector<int64_t> result;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == -4 && i + 2 < codes.size()) {
      result.insert(result.begin(), {-4, codes[i + 1], codes[i + 2]});
      i += 2;
    } else {
      result.insert(result.begin(), codes[i]);
    }
  }
  return result;
}

}  // namespace

Reshaped ApplyReshape(const TShape& data, std::vector<int64_t> codes, bool reverse) {
  const std::string text = Text(codes);
  std::vector<int64_t> lengths(data.begin(), data.end());
  if (reverse) {
    std::reverse(lengths.begin(), lengths.end());
    codes = Reversed(codes);
  }
  Matcher matcher(lengths, codes, reverse, text);
  matcher.Match();
  std::vector<int64_t> out = matcher.out();
  Reshaped result{{}, matcher.same()};
  if (reverse) {
    std::reverse(out.begin(), out.end());
    for (auto& [from, to] : result.same) {
      from = data.ndim() - 1 - from;
      to = static_cast<int>(out.size()) - 1 - to;
    }
  }
  result.shape = TShape(std::span<const int64_t>(out));
  return result;
}

void ReshapeProperty::Check() {
  codes_.assign(param_.shape.begin(), param_.shape.end());
  reverse_ = param_.reverse;
  if (!codes_.empty()) return;
  codes_.assign(param_.target_shape.begin(), param_.target_shape.end());
  if (codes_.empty())
    Throw(ErrorKind::kConfig,
          "Reshape needs the parameter 'shape' (tuple: the new shape, such as (0, -1))");
  reverse_ = false;
  const size_t first = param_.keep_highest ? 1 : 0;
  std::replace(codes_.begin() + static_cast<std::ptrdiff_t>(first), codes_.end(), int64_t{0},
               int64_t{-1});
  if (param_.keep_highest) codes_[0] = 0;
}

bool ReshapeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape& result = (*out)[0];
  if (!data.has_rank()) return false;
  const Reshaped first = ApplyReshape(data, codes_, reverse_);
  UnifyShape(first.shape, &result, TypeString(), "output");
  for (const auto& [from, to] : first.same) {
    if (data[from] == kUnknown) data[from] = result[to];
  }
  // A known output determines one more unknown axis of the input.
  const int unknown = static_cast<int>(std::count(data.begin(), data.end(), kUnknown));
  if (unknown == 1 && result.known()) {
    const int64_t known = data.KnownProduct(0, data.ndim());
    if (known == 0 || result.Size() % known != 0) {
      Throw(ErrorKind::kConfig,
            "Reshape: data has shape {}, which does not match the {} elements of output {}",
            data.ToString(), result.Size(), result.ToString());
    }
    for (int i = 0; i < data.ndim(); ++i) {
      if (data[i] == kUnknown) data[i] = result.Size() / known;
    }
  }
  if (!data.known()) return false;
  UnifyShape(ApplyReshape(data, codes_, reverse_).shape, &result, TypeString(), "output");
  if (!result.known()) return false;
  if (result.Size() != data.Size()) {
    Throw(ErrorKind::kConfig,
          "Reshape: shape = {} gives {}, but data of shape {} have a different number of elements",
          Text(codes_), result.ToString(), data.ToString());
  }
  return true;
}

bool ReshapeToProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  UnifyShape(param_.shape, &(*out)[0], TypeString(), "output");
  const TShape& data = (*in)[0];
  if (data.known() && data.Size() != param_.shape.Size()) {
    Throw(ErrorKind::kConfig, "_reshape_to: data of shape {} have no shape {}", data.ToString(),
          param_.shape.ToString());
  }
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(reshape, registry) {
  registry.AddProperty("_reshape_to", {},
                       [] { return std::make_unique<mxtrain::ReshapeToProperty>(); });
  registry.AddProperty("Reshape", {"reshape"},
                       [] { return std::make_unique<mxtrain::ReshapeProperty>(); });
}
