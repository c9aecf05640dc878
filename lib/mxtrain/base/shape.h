// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shapes with partial knowledge. An unknown dimension is -1 and an unknown rank is ndim() == -1; 0
// is a valid size, so empty arrays are valid (importers of MXNet's files map its 0 to -1).
// Trivially copyable: kernels take shapes by value.
//
// No array has more than kMaxSize elements: elements of eight bytes would then fill the address
// space of a process, and bytes, offsets and their sums stay far within int64_t. A shape may hold
// any numbers; functions that count elements return the true count or throw.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class MXTRAIN_API TShape {
 public:
  static constexpr int kMaxDims = 8;
  static constexpr int64_t kUnknown = -1;
  static constexpr int64_t kMaxSize = int64_t{1} << 44;

  TShape() = default;  // rank unknown
  TShape(std::initializer_list<int64_t> dims) : TShape(std::span(dims.begin(), dims.size())) {}
  explicit TShape(std::span<const int64_t> dims);  // throws kConfig for more than kMaxDims
  static TShape OfRank(int ndim);                  // every dimension unknown

  MXTRAIN_HD int ndim() const { return ndim_; }
  MXTRAIN_HD bool has_rank() const { return ndim_ >= 0; }
  MXTRAIN_HD int64_t operator[](int i) const { return dim_[i]; }
  MXTRAIN_HD int64_t& operator[](int i) { return dim_[i]; }
  MXTRAIN_HD const int64_t* begin() const { return dim_; }
  MXTRAIN_HD const int64_t* end() const { return dim_ + (ndim_ < 0 ? 0 : ndim_); }

  bool known() const;  // rank and every dimension
  // Number of elements; kUnknown if a dimension is unknown. The second overload is the product over
  // [first, last). Throw kConfig, with the shape, above kMaxSize; dimensions of 0 do not excuse the
  // others.
  int64_t Size() const { return Product(0, ndim_); }
  int64_t Product(int first, int last) const;
  int64_t KnownProduct(int first, int last) const;  // skips unknown dimensions
  std::string ToString() const;                     // "[32, ?, 28]", "[]", "?" for unknown rank
  // Reads "(2, 3)", "[2,3]", "5", "()", "(2L,)". Throws kConfig with what is wrong.
  static TShape Parse(std::string_view text);
  // "(2, 3)", "(2,)", "()": MXNet's notation.
  std::string ToTuple() const;

  MXTRAIN_HD friend bool operator==(const TShape& a, const TShape& b) {
    if (a.ndim_ != b.ndim_) return false;
    for (int i = 0; i < a.ndim_; ++i) {
      if (a.dim_[i] != b.dim_[i]) return false;
    }
    return true;
  }

 private:
  int ndim_ = -1;
  int64_t dim_[kMaxDims] = {};
};

// Merges what two sources know of one shape. Returns false and leaves *into unchanged if they
// contradict.
MXTRAIN_API bool MergeShape(const TShape& from, TShape* into);

}  // namespace mxtrain
