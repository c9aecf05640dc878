// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/stream.h"

#include "mxtrain/device/cuda/internal/device_scope.h"

namespace mxtrain {
namespace {

class CudaEvent final : public Event {
 public:
  // Waiting threads sleep: decoding needs the cores.
  CudaEvent() {
    MXTRAIN_CHECK_CUDA(
        cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync));
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void Wait() override { MXTRAIN_CHECK_CUDA(cudaEventSynchronize(event_)); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// An instantiated graph, ready to launch.
class CudaGraph final : public CapturedGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  cudaGraphExec_t get() const { return graph_; }

 private:
  cudaGraphExec_t graph_;
};

}  // namespace

CudaStream::CudaStream(Context ctx, int priority) : ctx_(ctx) {
  MXTRAIN_CHECK_CUDA(cudaSetDevice(ctx.id));
  int lowest = 0, highest = 0;  // lower numbers are higher priorities
  MXTRAIN_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  MXTRAIN_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                                  priority > 0 ? highest : lowest));
}

// Ignores errors: a failed device reports them to whoever waits for its work.
CudaStream::~CudaStream() {
  cudaStreamSynchronize(stream_);
  if (cudnn_) cudnnDestroy(cudnn_);
  if (cublas_lt_) cublasLtDestroy(cublas_lt_);
  if (cublas_) cublasDestroy(cublas_);
  cudaStreamDestroy(stream_);
}

// An event belongs to the device that is current at its creation, and only that device can record
// it. The caller may be the worker of another device.
std::unique_ptr<Event> CudaStream::NewEvent() {
  const cuda::DeviceScope scope(ctx_.id);
  return std::make_unique<CudaEvent>();
}

void CudaStream::Record(Event& event) {
  const std::lock_guard lock(capture_);
  MXTRAIN_CHECK_CUDA(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_));
}

void CudaStream::WaitFor(const Event& event) {
  const std::lock_guard lock(capture_);
  MXTRAIN_CHECK_CUDA(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).get(), 0));
}

// Other threads may still allocate memory meanwhile; this one may not.
bool CudaStream::BeginCapture() {
  std::unique_lock lock(capture_);
  MXTRAIN_CHECK_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  lock.release();  // released by EndCapture
  return true;
}

// An error here refers to the capture; none of that work was executed.
std::unique_ptr<CapturedGraph> CudaStream::EndCapture() {
  const std::unique_lock lock(capture_, std::adopt_lock);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph)
    cudaGraphInstantiate(&ready, graph, 0);
  if (graph) cudaGraphDestroy(graph);
  if (!ready) cudaGetLastError();  // clear the error
  return ready ? std::make_unique<CudaGraph>(ready) : nullptr;
}

void CudaStream::Replay(CapturedGraph& recording) {
  MXTRAIN_CHECK_CUDA(cudaGraphLaunch(static_cast<CudaGraph&>(recording).get(), stream_));
}

cublasHandle_t CudaStream::cublas() {
  if (!cublas_) {
    MXTRAIN_CHECK_CUDA(cublasCreate(&cublas_));
    MXTRAIN_CHECK_CUDA(cublasSetStream(cublas_, stream_));
  }
  return cublas_;
}

cublasLtHandle_t CudaStream::cublas_lt() {
  if (!cublas_lt_) MXTRAIN_CHECK_CUDA(cublasLtCreate(&cublas_lt_));
  return cublas_lt_;
}

cudnnHandle_t CudaStream::cudnn() {
  if (!cudnn_) {
    MXTRAIN_CHECK_CUDA(cudnnCreate(&cudnn_));
    MXTRAIN_CHECK_CUDA(cudnnSetStream(cudnn_, stream_));
  }
  return cudnn_;
}

}  // namespace mxtrain
