// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_buffer.h"

#include <algorithm>
#include <cstring>

#include "mxtrain/operator/kernel.h"

namespace mxtrain::test {
namespace {
constexpr int64_t kGuard = 128;
constexpr uint8_t kFence = 0xA5;
}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes)
    : bytes_(bytes), memory_(static_cast<size_t>(bytes + 2 * kGuard + 64), kFence) {
  const auto address = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
  begin_ = reinterpret_cast<uint8_t*>((address + 63) / 64 * 64);
  Poison();
}

void GuardedBuffer::Poison() {
  std::fill_n(begin_, bytes_, uint8_t{0xFF});
}

bool GuardedBuffer::GuardsIntact() const {
  const auto fence = [](uint8_t byte) { return byte == kFence; };
  return std::all_of(memory_.data(), static_cast<const uint8_t*>(begin_), fence) &&
         std::all_of(static_cast<const uint8_t*>(begin_ + bytes_), memory_.data() + memory_.size(),
                     fence);
}

void GuardedBuffer::PlaceOn(Backend& backend, Context ctx) {
  device_ = ctx;
  backend_ = &backend;
  twin_ = std::shared_ptr<void>(backend.Allocate(ctx, bytes_ + 2 * kGuard),
                                [&backend, ctx](void* data) { backend.Free(ctx, data); });
  if (!twin_) Throw(ErrorKind::kMemory, "the device cannot allocate {} bytes", bytes_ + 2 * kGuard);
}

void* GuardedBuffer::device_data() const {
  return bytes_ == 0 ? nullptr : static_cast<uint8_t*>(twin_.get()) + kGuard;
}

void GuardedBuffer::Upload(RunContext ctx) const {
  backend_->CopyBytes(ctx, Context::cpu(), begin_ - kGuard, device_, twin_.get(),
                      bytes_ + 2 * kGuard);
}

void GuardedBuffer::Download(RunContext ctx) {
  backend_->CopyBytes(ctx, device_, twin_.get(), Context::cpu(), begin_ - kGuard,
                      bytes_ + 2 * kGuard);
}

std::vector<double> ReadValues(const void* data, DType type, int64_t size) {
  std::vector<double> values(static_cast<size_t>(size));
  SwitchType(type, "a test", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(data);
    for (int64_t i = 0; i < size; ++i) values[i] = static_cast<double>(from[i]);
  });
  return values;
}

void WriteValues(const std::vector<double>& values, DType type, void* data) {
  SwitchType(type, "a test", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(data);
    for (size_t i = 0; i < values.size(); ++i) to[i] = ElementOf<T>(values[i]);
  });
}

std::vector<double> RoundTo(DType type, const std::vector<double>& values) {
  std::vector<uint8_t> memory(values.size() * static_cast<size_t>(SizeOf(type)));
  WriteValues(values, type, memory.data());
  return ReadValues(memory.data(), type, static_cast<int64_t>(values.size()));
}

double EpsilonOf(DType type) {
  switch (type) {
    case DType::kFloat64:
      return 0x1p-52;
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBfloat16:
      return 0x1p-7;
    default:
      return 0;
  }
}

}  // namespace mxtrain::test
