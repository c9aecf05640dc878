// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CUDA stream and the library handles for it. One thread issues work to a stream: the worker of
// its lane.
#include <cublasLt.h>

#include <memory>
#include <mutex>

#include "mxtrain/device/context.h"
#include "mxtrain/device/cuda/error.h"
#include "mxtrain/device/memory_lender.h"

namespace mxtrain {

class CudaStream final : public Stream {
 public:
  // Makes the device current for the calling thread, which will issue the work. Priority: 0, or 1
  // for urgent work. The lender gives cuBLAS its workspace; without one cuBLAS allocates it. Throws
  // kDevice.
  CudaStream(Context ctx, int priority, std::shared_ptr<const MemoryLender> lender = nullptr);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::unique_ptr<Event> NewEvent() override;
  void Record(Event& event) override;
  void WaitFor(const Event& event) override;
  bool BeginCapture() override;
  std::unique_ptr<CapturedGraph> EndCapture() override;
  void Replay(CapturedGraph& recording) override;
  void* native() const override { return stream_; }

  Context ctx() const { return ctx_; }
  cudaStream_t get() const { return stream_; }

  // Created at the first call and bound to this stream; for the issuing thread. kMemory if there is
  // no space for a workspace.
  cublasHandle_t cublas();
  cublasLtHandle_t cublas_lt();
  cudnnHandle_t cudnn();

 private:
  const Context ctx_;
  const std::shared_ptr<const MemoryLender> lender_;
  std::unique_ptr<Loan> workspace_;  // of cuBLAS
  cudaStream_t stream_ = nullptr;
  // Held during a capture: an event that another thread records or waits for meanwhile would become
  // part of the capture.
  std::recursive_mutex capture_;
  cublasHandle_t cublas_ = nullptr;
  cublasLtHandle_t cublas_lt_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
};

// The stream of a function that runs on a GPU.
inline CudaStream& StreamOf(const RunContext& ctx) {
  return static_cast<CudaStream&>(*ctx.stream);
}

}  // namespace mxtrain
