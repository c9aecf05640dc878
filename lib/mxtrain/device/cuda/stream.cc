// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/stream.h"

#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/cuda/internal/timed_event.h"

namespace mxtrain {
namespace {

// What NVIDIA recommends for compute capability 9.0. Of its own, cuBLAS would allocate one for each
// captured graph.
constexpr int64_t kCublasWorkspace = int64_t{32} << 20;  // bytes

// Created, recorded and waited for by any thread, whose current device may be another, or none: a
// call of the runtime would then create a context on device 0. So every call is in a DeviceScope.
// An event belongs to the device that is current at its creation, and only that device can record
// it.
class CudaEvent final : public TimedEvent {
 public:
  // Waiting threads sleep: decoding needs the cores. Noting the time costs the device some of it.
  CudaEvent(int device, bool timed) : device_(device) {
    const cuda::DeviceScope scope(device_);
    MXTRAIN_CHECK_CUDA(cudaEventCreateWithFlags(
        &event_, cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming)));
  }
  ~CudaEvent() override {
    cuda::OnDevice(device_, [this] { cudaEventDestroy(event_); });
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void Wait() override {
    const cuda::DeviceScope scope(device_);
    MXTRAIN_CHECK_CUDA(cudaEventSynchronize(event_));
  }
  double SecondsSince(const TimedEvent& earlier) const override {
    const cuda::DeviceScope scope(device_);
    float milliseconds = 0;
    MXTRAIN_CHECK_CUDA(
        cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event_, event_));
    return 1e-3 * static_cast<double>(milliseconds);
  }
  cudaEvent_t get() const { return event_; }

 private:
  const int device_;
  cudaEvent_t event_ = nullptr;
};

// An instantiated graph, ready to launch.
class CudaGraph final : public CapturedGraph {
 public:
  CudaGraph(int device, cudaGraphExec_t graph) : device_(device), graph_(graph) {}
  ~CudaGraph() override {
    cuda::OnDevice(device_, [this] { cudaGraphExecDestroy(graph_); });
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  cudaGraphExec_t get() const { return graph_; }

 private:
  const int device_;
  cudaGraphExec_t graph_;
};

}  // namespace

std::unique_ptr<TimedEvent> cuda::NewTimedEvent(int device) {
  return std::make_unique<CudaEvent>(device, /*timed=*/true);
}

CudaStream::CudaStream(Context ctx, int priority, std::shared_ptr<const MemoryLender> lender)
    : ctx_(ctx), lender_(std::move(lender)) {
  MXTRAIN_CHECK_CUDA(cudaSetDevice(ctx.id));
  int lowest = 0, highest = 0;  // lower numbers are higher priorities
  MXTRAIN_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  MXTRAIN_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                                  priority > 0 ? highest : lowest));
}

CudaStream::~CudaStream() {
  cuda::OnDevice(ctx_.id, [this] {
    cudaStreamSynchronize(stream_);
    if (cudnn_) cudnnDestroy(cudnn_);
    if (cublas_lt_) cublasLtDestroy(cublas_lt_);
    if (cublas_) cublasDestroy(cublas_);
    cudaStreamDestroy(stream_);
  });
}

std::unique_ptr<Event> CudaStream::NewEvent() {
  return std::make_unique<CudaEvent>(ctx_.id, /*timed=*/false);
}

void CudaStream::Record(Event& event) {
  const cuda::DeviceScope scope(ctx_.id);
  const std::lock_guard lock(capture_);
  MXTRAIN_CHECK_CUDA(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_));
}

void CudaStream::WaitFor(const Event& event) {
  const cuda::DeviceScope scope(ctx_.id);
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
  MXTRAIN_CHECK_CUDA(cudaStreamEndCapture(stream_, &graph));
  const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  cuda::Check(status, "cudaGraphInstantiate");
  return std::make_unique<CudaGraph>(ctx_.id, ready);
}

void CudaStream::Replay(CapturedGraph& recording) {
  MXTRAIN_CHECK_CUDA(cudaGraphLaunch(static_cast<CudaGraph&>(recording).get(), stream_));
}

cublasHandle_t CudaStream::cublas() {
  if (!cublas_) {
    MXTRAIN_CHECK_CUDA(cublasCreate(&cublas_));
    MXTRAIN_CHECK_CUDA(cublasSetStream(cublas_, stream_));
    if (lender_) {
      workspace_ = std::make_unique<Loan>(lender_, ctx_, kCublasWorkspace, "cuBLAS's workspace");
      MXTRAIN_CHECK_CUDA(cublasSetWorkspace(cublas_, workspace_->get(), kCublasWorkspace));
    }
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
