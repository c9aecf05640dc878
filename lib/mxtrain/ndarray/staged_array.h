#pragma once
// A small array that the host fills anew again and again and kernels read. On the CPU it is one array; for a GPU the host fills pinned
// memory, which is copied over.
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain {

class StagedArray {
 public:
  StagedArray() = default;
  StagedArray(Runtime& runtime, const TShape& shape, DType type, Context ctx, const std::string& who)
      : array_(runtime, shape, type, ctx, Layout(), who),
        host_(ctx.type == DeviceType::kGPU ? NDArray(runtime, shape, type, Context::cpu_pinned(ctx.id), Layout(), who) : array_) {}

  const NDArray& array() const { return array_; }  // what kernels read
  const NDArray& host() const { return host_; }    // what functions of the host write
  // To be called after such a function was pushed.
  void Upload() { array_.CopyFrom(host_); }

 private:
  NDArray array_, host_;
};

}  // namespace mxtrain
