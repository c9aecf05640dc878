// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/shape.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain {

TShape::TShape(std::span<const int64_t> dims) : ndim_(static_cast<int>(dims.size())) {
  if (dims.size() > kMaxDims)
    Throw(ErrorKind::kConfig, "an array has at most {} dimensions, not {}", kMaxDims, dims.size());
  std::copy(dims.begin(), dims.end(), dim_);
}

TShape TShape::OfRank(int ndim) {
  TShape shape;
  if (ndim > kMaxDims)
    Throw(ErrorKind::kConfig, "an array has at most {} dimensions, not {}", kMaxDims, ndim);
  shape.ndim_ = ndim;
  std::fill_n(shape.dim_, std::max(ndim, 0), kUnknown);
  return shape;
}

bool TShape::known() const {
  return ndim_ >= 0 && std::all_of(begin(), end(), [](int64_t d) { return d >= 0; });
}

int64_t TShape::KnownProduct(int first, int last) const {
  int64_t size = 1;
  bool empty = false;
  for (int i = first; i < last; ++i) {
    empty = empty || dim_[i] == 0;
    if (dim_[i] <= 0) continue;
    if (__builtin_mul_overflow(size, dim_[i], &size) || size > kMaxSize) {
      Throw(ErrorKind::kConfig, "shape {} has too many elements: an array holds at most 2^44",
            ToString());
    }
  }
  return empty ? 0 : size;
}

int64_t TShape::Product(int first, int last) const {
  const bool unknown =
      std::any_of(dim_ + first, dim_ + std::max(first, last), [](int64_t d) { return d < 0; });
  return unknown ? kUnknown : KnownProduct(first, last);
}

std::string TShape::ToString() const {
  if (ndim_ < 0) return "?";
  std::string text = "[";
  for (int i = 0; i < ndim_; ++i) {
    if (i) text += ", ";
    text += dim_[i] < 0 ? "?" : std::to_string(dim_[i]);
  }
  return text + "]";
}

std::string TShape::ToTuple() const {
  std::string text = "(";
  for (int i = 0; i < std::max(ndim_, 0); ++i) {
    if (i) text += ", ";
    text += std::to_string(dim_[i]);
  }
  return text + (ndim_ == 1 ? ",)" : ")");
}

TShape TShape::Parse(std::string_view text) {
  std::string_view rest = text;
  auto skip = [&] {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
  };
  auto fail = [&](const char* why) {
    Throw(ErrorKind::kConfig, "'{}' is not a shape: {}; write it as (2, 3)", Shortened(text), why);
  };
  skip();
  char close = 0;
  if (!rest.empty() && (rest.front() == '(' || rest.front() == '[')) {
    close = rest.front() == '(' ? ')' : ']';
    rest.remove_prefix(1);
  }
  std::vector<int64_t> dims;
  for (;;) {
    skip();
    if (close && !rest.empty() && rest.front() == close) break;
    if (rest.empty() && !close && !dims.empty()) break;
    int64_t value = 0;
    auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (status != std::errc()) fail("a number is missing");
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (!rest.empty() && (rest.front() == 'L' || rest.front() == 'l')) rest.remove_prefix(1);
    dims.push_back(value);
    skip();
    if (!rest.empty() && rest.front() == ',') {
      rest.remove_prefix(1);
    } else if (close ? (rest.empty() || rest.front() != close) : !rest.empty()) {
      fail(close ? "the closing bracket is missing" : "a comma or the end was expected");
    }
  }
  if (close) {
    rest.remove_prefix(1);
    skip();
    if (!rest.empty()) fail("text follows the closing bracket");
  }
  return TShape(dims);
}

bool MergeShape(const TShape& from, TShape* into) {
  if (!from.has_rank()) return true;
  if (!into->has_rank()) {
    *into = from;
    return true;
  }
  if (from.ndim() != into->ndim()) return false;
  TShape merged = *into;
  for (int i = 0; i < from.ndim(); ++i) {
    if (from[i] < 0) continue;
    if (merged[i] >= 0 && merged[i] != from[i]) return false;
    merged[i] = from[i];
  }
  *into = merged;
  return true;
}

}  // namespace mxtrain
