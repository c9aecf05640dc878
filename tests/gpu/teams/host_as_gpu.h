// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host as a GPU.
#include <cstring>
#include <memory>

#include "mxtrain/device/backend.h"

namespace mxtrain::test {

class NowEvent final : public Event {
 public:
  void Wait() override {}
};
class NowStream final : public Stream {
 public:
  std::unique_ptr<Event> NewEvent() override { return std::make_unique<NowEvent>(); }
  void Record(Event&) override {}
  void WaitFor(const Event&) override {}
};

// Host memory under the name of a GPU; work is done when it is issued.
class HostAsGpu final : public Backend {
 public:
  int DeviceCount() const override { return 1; }
  std::string WhyAbsent() const override { return ""; }
  std::string WhyNotFastIn(DType, Context) const override { return ""; }
  void* Allocate(Context, int64_t bytes) override { return cpu_->Allocate(Context::cpu(), bytes); }
  void Free(Context, void* data) override { cpu_->Free(Context::cpu(), data); }
  std::unique_ptr<Stream> NewStream(Context, int) override { return std::make_unique<NowStream>(); }
  Layout Intern(std::unique_ptr<LayoutDesc> desc) override { return cpu_->Intern(std::move(desc)); }
  void Reorder(RunContext, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) override {
    cpu_->Reorder({}, from, src, to, dst);
  }
  void CopyBytes(RunContext, Context, const void* src, Context, void* dst, int64_t bytes) override {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
  }
  void PutBytes(RunContext, const void* value, void* dst, int64_t bytes) override {
    std::memcpy(dst, value, static_cast<size_t>(bytes));
  }
  void Zero(RunContext, void* data, int64_t bytes) override {
    std::memset(data, 0, static_cast<size_t>(bytes));
  }

 private:
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend(1);
};

}  // namespace mxtrain::test
