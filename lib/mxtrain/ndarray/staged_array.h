// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small array that the host refills repeatedly and kernels read, on one or several devices. On
// the CPU it is one array; for a GPU the host fills pinned memory, which is then copied.
#include <span>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain {

class StagedArray {
 public:
  StagedArray() = default;
  StagedArray(Runtime& runtime, const TShape& shape, DType type, std::span<const Context> devices,
              const std::string& who) {
    for (const Context device : devices)
      arrays_.emplace_back(runtime, shape, type, device, Layout(), who);
    const Context first = devices[0];
    host_ = first.type == DeviceType::kGPU
                ? NDArray(runtime, shape, type, Context::cpu_pinned(first.id), Layout(), who)
                : arrays_[0];
  }
  StagedArray(Runtime& runtime, const TShape& shape, DType type, Context device,
              const std::string& who)
      : StagedArray(runtime, shape, type, std::span(&device, 1), who) {}

  const NDArray& array(size_t device = 0) const { return arrays_[device]; }  // what kernels read
  const NDArray& host() const { return host_; }  // what functions of the host write
  // Call after such a function was pushed.
  void Upload() {
    for (NDArray& array : arrays_) array.CopyFrom(host_);
  }

 private:
  std::vector<NDArray> arrays_;
  NDArray host_;
};

}  // namespace mxtrain
