#pragma once
// Bytes with a fence on both sides. Fresh contents are 0xFF in every byte: NaN in all floating types.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/dtype.h"

namespace mxtrain::test {

class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes);
  // 64-byte aligned; null when there are no bytes, as kernels get it.
  void* data() const { return bytes_ == 0 ? nullptr : begin_; }
  int64_t bytes() const { return bytes_; }
  std::span<const uint8_t> contents() const { return {begin_, static_cast<size_t>(bytes_)}; }
  void Poison();
  bool GuardsIntact() const;

 private:
  int64_t bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* begin_;
};

// Elements between memory and double.
std::vector<double> ReadValues(const void* data, DType type, int64_t size);
void WriteValues(const std::vector<double>& values, DType type, void* data);
// The values as `type` can hold them.
std::vector<double> RoundTo(DType type, const std::vector<double>& values);
double EpsilonOf(DType type);  // distance from 1 to the next number; 0 for integers

}  // namespace mxtrain::test
