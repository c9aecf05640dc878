// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes with guards on both sides. Initially every byte is 0xFF: NaN in all floating types. There
// may be a twin, including guards, in device memory.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/backend.h"

namespace mxtrain::test {

class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes);
  // 64-byte aligned; null for zero bytes, as kernels get it.
  void* data() const { return bytes_ == 0 ? nullptr : begin_; }
  int64_t bytes() const { return bytes_; }
  std::span<const uint8_t> contents() const { return {begin_, static_cast<size_t>(bytes_)}; }
  void Poison();
  bool GuardsIntact() const;

  // Creates the twin. The backend must outlive the buffer.
  void PlaceOn(Backend& backend, Context ctx);
  void* device_data() const;  // of the twin; null for zero bytes
  // Copies bytes to the twin and back; done when the work of the stream is.
  void Upload(RunContext ctx) const;
  void Download(RunContext ctx);

 private:
  int64_t bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* begin_;
  Context device_;
  Backend* backend_ = nullptr;
  std::shared_ptr<void> twin_;  // guard, bytes, guard
};

// Conversion of elements between memory and double.
std::vector<double> ReadValues(const void* data, DType type, int64_t size);
void WriteValues(const std::vector<double>& values, DType type, void* data);
// The values rounded to `type`.
std::vector<double> RoundTo(DType type, const std::vector<double>& values);
double EpsilonOf(DType type);  // distance from 1 to the next number; 0 for integers

}  // namespace mxtrain::test
