// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory layout of an array. A value: one pointer, null = plain row-major. The Backend that
// made the descriptions interns them (equal descriptions are one object); they live as long as the
// backend and compare by address.
#include <string>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/shape.h"

namespace mxtrain {

// Immutable, hence safe from every thread.
class MXTRAIN_API LayoutDesc {
 public:
  virtual ~LayoutDesc() = default;
  virtual std::string Name() const = 0;  // "aBcd8b"; equal names are equal layouts
  // Includes padding: >= Size() * SizeOf.
  virtual int64_t Bytes(const TShape& shape, DType type) const = 0;
  virtual bool Padded(const TShape& shape) const = 0;  // padding always holds zeros
};

class Layout {
 public:
  Layout() = default;
  explicit Layout(const LayoutDesc* desc) : desc_(desc) {}

  bool plain() const { return desc_ == nullptr; }
  const LayoutDesc* desc() const { return desc_; }
  std::string Name() const { return desc_ ? desc_->Name() : "plain"; }
  int64_t Bytes(const TShape& shape, DType type) const {
    return desc_ ? desc_->Bytes(shape, type) : shape.Size() * SizeOf(type);
  }
  bool Padded(const TShape& shape) const { return desc_ && desc_->Padded(shape); }
  friend bool operator==(Layout, Layout) = default;

 private:
  const LayoutDesc* desc_ = nullptr;
};

struct TensorSpec {
  TShape shape;
  DType type = DType::kUnknown;
  Layout layout;

  int64_t Bytes() const { return layout.Bytes(shape, type); }
  bool known() const { return shape.known() && type != DType::kUnknown; }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace mxtrain
