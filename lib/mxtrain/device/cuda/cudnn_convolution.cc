// SPDX-License-Identifier: Apache-2.0
// Uses cuDNN's calls from before its graph interface, which are deprecated but still supported.
#include "mxtrain/device/cuda/cudnn_convolution.h"

#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/internal/planning_handle.h"

namespace mxtrain::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 30;       // bytes
constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;  // of an array that these calls support
// Algorithms measured per part: the fastest ones by cuDNN's model.
constexpr size_t kMostMeasured = 4;
constexpr int kRuns = 3;  // per measured algorithm; the fastest counts

int Int(int64_t value) {
  return static_cast<int>(value);
}

cudnnDataType_t ComputeType(DType type) {
  return type == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// The most permissive math that is allowed.
cudnnMathType_t MathType(const ConvolutionOptions& options) {
  if (options.type == DType::kFloat64) return CUDNN_DEFAULT_MATH;
  if (options.type == DType::kFloat32)
    return options.math == ConvolutionMath::kTf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return CUDNN_TENSOR_OP_MATH;
}

void Describe(const ConvolutionShape& s, const ConvolutionOptions& options,
              const ConvolutionDescriptor& descriptor) {
  MXTRAIN_CHECK_CUDA(cudnnSetConvolution2dDescriptor(
      descriptor.get(), Int(s.pad[0]), Int(s.pad[1]), Int(s.stride[0]), Int(s.stride[1]),
      Int(s.dilate[0]), Int(s.dilate[1]), CUDNN_CROSS_CORRELATION, ComputeType(options.type)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionGroupCount(descriptor.get(), Int(s.groups)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(descriptor.get(), MathType(options)));
}

// alpha and beta as cuDNN expects them.
class Factors {
 public:
  Factors(DType type, bool add)
      : beta_(add ? 1 : 0), wide_beta_(add ? 1 : 0), wide_(type == DType::kFloat64) {}
  const void* Alpha() const { return wide_ ? static_cast<const void*>(&wide_one_) : &one_; }
  const void* Beta() const { return wide_ ? static_cast<const void*>(&wide_beta_) : &beta_; }

 private:
  float one_ = 1, beta_;
  double wide_one_ = 1, wide_beta_;
  bool wide_;
};

// What a part of a convolution reads and writes.
struct Operands {
  const void *first, *second;
  void* result;
};

// The cuDNN calls for the three parts, and cuDNN's names of their algorithms, by number.
struct ForwardCalls {
  using Result = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr const char* kName = "forward";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
      "winograd",      "winograd_nonfused"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, f.data.get(), f.weight.get(), d.get(),
                                                  f.out.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle, f.data.get(), f.weight.get(),
                                                   part.descriptor.get(), f.out.get(),
                                                   part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionForward(handle, k.Alpha(), f.data.get(), o.first, f.weight.get(),
                                   o.second, part.descriptor.get(), part.algorithm, workspace,
                                   static_cast<size_t>(part.workspace), k.Beta(), f.out.get(),
                                   o.result);
  }
  static Operands OperandsOf(void* data, void* weight, void* out) { return {data, weight, out}; }
};

struct DataGradientCalls {
  using Result = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr const char* kName = "gradient of the data";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT] = {
      "algorithm_0", "algorithm_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, f.weight.get(), f.out.get(), d.get(),
                                                       f.data.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, f.weight.get(), f.out.get(),
                                                        part.descriptor.get(), f.data.get(),
                                                        part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionBackwardData(handle, k.Alpha(), f.weight.get(), o.second, f.out.get(),
                                        o.first, part.descriptor.get(), part.algorithm, workspace,
                                        static_cast<size_t>(part.workspace), k.Beta(), f.data.get(),
                                        o.result);
  }
  static Operands OperandsOf(void* data, void* weight, void* out) { return {out, weight, data}; }
};

struct WeightGradientCalls {
  using Result = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr const char* kName = "gradient of the weight";
  static constexpr const char* kAlgorithms[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT] = {
      "algorithm_0", "algorithm_1",       "fft",       "algorithm_3",
      "winograd",    "winograd_nonfused", "fft_tiling"};

  static cudnnStatus_t Ask(cudnnHandle_t handle, const ConvolutionLayouts& f,
                           const ConvolutionDescriptor& d, int most, int* count, Result* results) {
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, f.data.get(), f.out.get(), d.get(),
                                                         f.weight.get(), most, count, results);
  }
  template <typename Part>
  static cudnnStatus_t AskWorkspace(cudnnHandle_t handle, const ConvolutionLayouts& f,
                                    const Part& part, size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, f.data.get(), f.out.get(),
                                                          part.descriptor.get(), f.weight.get(),
                                                          part.algorithm, bytes);
  }
  template <typename Part>
  static cudnnStatus_t Run(cudnnHandle_t handle, const ConvolutionLayouts& f, const Part& part,
                           const Factors& k, const Operands& o, void* workspace) {
    return cudnnConvolutionBackwardFilter(handle, k.Alpha(), f.data.get(), o.second, f.out.get(),
                                          o.first, part.descriptor.get(), part.algorithm, workspace,
                                          static_cast<size_t>(part.workspace), k.Beta(),
                                          f.weight.get(), o.result);
  }
  static Operands OperandsOf(void* data, void* weight, void* out) { return {out, data, weight}; }
};

// Errors of the Fourier method depend on the largest element of an image, not of a window.
template <typename Calls>
bool Allowed(const typename Calls::Result& r, const ConvolutionOptions& options) {
  if (r.status != CUDNN_STATUS_SUCCESS || static_cast<int64_t>(r.memory) > kMostWorkspace)
    return false;
  const std::string_view algorithm = Calls::kAlgorithms[r.algo];
  if (algorithm.starts_with("fft")) return false;
  if (options.deterministic && r.determinism != CUDNN_DETERMINISTIC) return false;
  if (options.math == ConvolutionMath::kPlain && algorithm.starts_with("winograd")) return false;
  return options.type != DType::kFloat32 || options.math == ConvolutionMath::kTf32 ||
         r.mathType == CUDNN_FMA_MATH || r.mathType == CUDNN_DEFAULT_MATH;
}

const char* NameOf(cudnnMathType_t math) {
  switch (math) {
    case CUDNN_DEFAULT_MATH:
      return "default";
    case CUDNN_TENSOR_OP_MATH:
      return "matrix_units";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION:
      return "matrix_units_converting";
    case CUDNN_FMA_MATH:
      return "fma";
  }
  return "unknown";
}

// The allowed algorithms of a part, in the order of cuDNN's estimates.
template <typename Calls>
struct Candidates {
  std::vector<typename Calls::Result> results;
  std::vector<std::string> names;  // "winograd, fma"

  template <typename Part>
  Candidates(cudnnHandle_t handle, const ConvolutionLayouts& layouts,
             const ConvolutionOptions& options, const Part& part) {
    constexpr int kMost = static_cast<int>(std::size(Calls::kAlgorithms));
    typename Calls::Result found[kMost];
    int count = 0;
    MXTRAIN_CHECK_CUDA(Calls::Ask(handle, layouts, part.descriptor, kMost, &count, found));
    for (typename Calls::Result& r : std::span(found, static_cast<size_t>(count))) {
      if (!Allowed<Calls>(r, options)) continue;
      // Keeps plain float32 arithmetic.
      if (MathType(options) == CUDNN_FMA_MATH) r.mathType = CUDNN_FMA_MATH;
      std::string name = format("{}, {}", Calls::kAlgorithms[r.algo], NameOf(r.mathType));
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      results.push_back(r);
      names.push_back(std::move(name));
    }
  }

  // Makes candidate i the algorithm of the part, and queries its workspace.
  template <typename Part>
  cudnnStatus_t Take(size_t i, cudnnHandle_t handle, const ConvolutionLayouts& layouts,
                     Part* part) const {
    part->algorithm = results[i].algo;
    part->deterministic = results[i].determinism == CUDNN_DETERMINISTIC;
    MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(part->descriptor.get(), results[i].mathType));
    size_t bytes = 0;
    const cudnnStatus_t status = Calls::AskWorkspace(handle, layouts, *part, &bytes);
    part->workspace = static_cast<int64_t>(bytes);
    return status;
  }
};

class TimedEvent {
 public:
  TimedEvent() { MXTRAIN_CHECK_CUDA(cudaEventCreate(&event_)); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Seconds of the work that `work` issues to the stream, after a first run that loads the kernel;
// nullopt if cuDNN refuses it.
template <typename Work>
std::optional<double> TimeOf(cudaStream_t stream, const Work& work) {
  if (work() != CUDNN_STATUS_SUCCESS) return std::nullopt;
  const TimedEvent begin, end;
  float least = std::numeric_limits<float>::max();  // milliseconds
  for (int run = 0; run < kRuns; ++run) {
    MXTRAIN_CHECK_CUDA(cudaEventRecord(begin.get(), stream));
    if (work() != CUDNN_STATUS_SUCCESS) return std::nullopt;
    MXTRAIN_CHECK_CUDA(cudaEventRecord(end.get(), stream));
    MXTRAIN_CHECK_CUDA(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    MXTRAIN_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    least = std::min(least, milliseconds);
  }
  return least / 1e3;
}

struct Sizes {
  int64_t data, out, weight;  // elements
  explicit Sizes(const ConvolutionShape& s)
      : data(s.batch * s.in_channels * s.in[0] * s.in[1]),
        out(s.batch * s.out_channels * s.out[0] * s.out[1]),
        weight(s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1]) {}
};

bool Fits(const ConvolutionShape& s) {
  const Sizes n(s);
  return std::min({n.data, n.out, n.weight}) > 0 &&
         std::max({n.data, n.out, n.weight}) <= kMostElements &&
         std::max({s.pad[0], s.pad[1], s.stride[0], s.stride[1], s.dilate[0], s.dilate[1]}) <=
             kMostElements;
}

const char* NameOf(ConvolutionMath math) {
  return math == ConvolutionMath::kTf32       ? "tf32"
         : math == ConvolutionMath::kWinograd ? "fast"
                                              : "exact";
}

// Everything that the choice for a part depends on.
std::string KeyOf(const char* part, const ConvolutionShape& s, const ConvolutionOptions& o,
                  const std::string& machine) {
  return format(
      "convolution, {}: data {}x{}x{}x{}, weight {}x{}x{}x{}, stride {}x{}, dilate {}x{}, pad "
      "{}x{}, groups {}; {}, {}, math {}{}; {}",
      part, s.batch, s.in_channels, s.in[0], s.in[1], s.out_channels, s.in_channels / s.groups,
      s.kernel[0], s.kernel[1], s.stride[0], s.stride[1], s.dilate[0], s.dilate[1], s.pad[0],
      s.pad[1], s.groups, mxtrain::NameOf(o.type),
      o.channels_last ? "channels last" : "channels first", NameOf(o.math),
      o.deterministic ? ", deterministic" : "", machine);
}

// The request for the parts of one convolution.
struct Question {
  Backend& backend;
  const int device;
  const PlanningHandle& handle;
  const ConvolutionLayouts& layouts;
  const ConvolutionShape& shape;
  const ConvolutionOptions& options;
};

// Tries candidates of a part on zero-filled arrays, which live as long as this object. Without
// space for them none is tried.
template <typename Calls, typename Part>
class Trial {
 public:
  Trial(const Question& question, const Candidates<Calls>& candidates, Part* part)
      : question_(question),
        candidates_(candidates),
        part_(part),
        lender_(LenderOf(question.backend)),
        data_(Zeros(Sizes(question.shape).data)),
        weight_(Zeros(Sizes(question.shape).weight)),
        out_(Zeros(Sizes(question.shape).out)) {}

  std::optional<double> SecondsOf(size_t candidate) {
    if (candidate >= kMostMeasured || !data_ || !weight_ || !out_) return std::nullopt;
    const Question& q = question_;
    if (candidates_.Take(candidate, q.handle.get(), q.layouts, part_) != CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    const std::unique_ptr<Loan> workspace = Borrow(std::max<int64_t>(part_->workspace, 1));
    if (!workspace) return std::nullopt;
    const Factors factors(q.options.type, false);
    const Operands operands = Calls::OperandsOf(data_->get(), weight_->get(), out_->get());
    return TimeOf(q.handle.stream(), [&] {
      return Calls::Run(q.handle.get(), q.layouts, *part_, factors, operands, workspace->get());
    });
  }

 private:
  // Null if the device is full.
  std::unique_ptr<Loan> Borrow(int64_t bytes) const {
    try {
      return std::make_unique<Loan>(lender_, Context::gpu(question_.device), bytes,
                                    "a measurement of cuDNN's kernels");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kMemory) throw;
      return nullptr;
    }
  }
  std::unique_ptr<Loan> Zeros(int64_t elements) const {
    const int64_t bytes = elements * SizeOf(question_.options.type);
    std::unique_ptr<Loan> loan = Borrow(bytes);
    if (loan)
      MXTRAIN_CHECK_CUDA(
          cudaMemsetAsync(loan->get(), 0, static_cast<size_t>(bytes), question_.handle.stream()));
    return loan;
  }

  const Question& question_;
  const Candidates<Calls>& candidates_;
  Part* const part_;
  const std::shared_ptr<const MemoryLender> lender_;
  const std::unique_ptr<Loan> data_, weight_, out_;
};

// False if no algorithm is allowed, or cuDNN cannot run those that are.
template <typename Calls, typename Part>
bool Choose(const Question& q, Part* part) {
  const Candidates<Calls> candidates(q.handle.get(), q.layouts, q.options, *part);
  if (candidates.names.empty()) return false;
  std::optional<Trial<Calls, Part>> trial;  // from the first measurement on
  KernelChoices::Stopwatch seconds_of = [&](size_t candidate) {
    if (!trial) trial.emplace(q, candidates, part);
    return trial->SecondsOf(candidate);
  };
  if (q.options.deterministic) seconds_of = {};
  KernelChoices* choices = ChoicesOf(q.backend);
  const size_t chosen =
      choices ? choices->Choose(KeyOf(Calls::kName, q.shape, q.options, q.handle.machine()),
                                candidates.names, seconds_of)
              : 0;
  if (candidates.Take(chosen, q.handle.get(), q.layouts, part) == CUDNN_STATUS_SUCCESS) return true;
  for (size_t i = 0; i < candidates.names.size(); ++i) {
    if (candidates.Take(i, q.handle.get(), q.layouts, part) == CUDNN_STATUS_SUCCESS) return true;
  }
  return false;
}

}  // namespace

CudnnConvolution::CudnnConvolution(const ConvolutionShape& s, const ConvolutionOptions& options)
    : type_(options.type) {
  const cudnnDataType_t type = CudnnType(options.type);
  const cudnnTensorFormat_t format = options.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  MXTRAIN_CHECK_CUDA(cudnnSetTensor4dDescriptor(layouts_.data.get(), format, type, Int(s.batch),
                                                Int(s.in_channels), Int(s.in[0]), Int(s.in[1])));
  MXTRAIN_CHECK_CUDA(cudnnSetTensor4dDescriptor(layouts_.out.get(), format, type, Int(s.batch),
                                                Int(s.out_channels), Int(s.out[0]), Int(s.out[1])));
  MXTRAIN_CHECK_CUDA(cudnnSetFilter4dDescriptor(layouts_.weight.get(), type, format,
                                                Int(s.out_channels), Int(s.in_channels / s.groups),
                                                Int(s.kernel[0]), Int(s.kernel[1])));
  Describe(s, options, forward_.descriptor);
  Describe(s, options, data_.descriptor);
  Describe(s, options, weight_.descriptor);
}

std::shared_ptr<const CudnnConvolution> CudnnConvolution::Make(Backend& backend, int device,
                                                               const ConvolutionShape& shape,
                                                               const ConvolutionOptions& options) {
  if (!Fits(shape)) return nullptr;
  const std::shared_ptr<CudnnConvolution> made(new CudnnConvolution(shape, options));
  const PlanningHandle handle(device);
  const Question question{backend, device, handle, made->layouts_, shape, options};
  if (options.forward && !Choose<ForwardCalls>(question, &made->forward_)) return nullptr;
  if (options.data_gradient && !Choose<DataGradientCalls>(question, &made->data_)) return nullptr;
  if (options.weight_gradient && !Choose<WeightGradientCalls>(question, &made->weight_))
    return nullptr;
  return made;
}

void CudnnConvolution::Forward(RunContext ctx, const void* data, const void* weight, void* out,
                               bool add, void* workspace) const {
  MXTRAIN_CHECK_CUDA(ForwardCalls::Run(StreamOf(ctx).cudnn(), layouts_, forward_,
                                       Factors(type_, add), {data, weight, out}, workspace));
}

void CudnnConvolution::DataGradient(RunContext ctx, const void* head, const void* weight, void* out,
                                    bool add, void* workspace) const {
  MXTRAIN_CHECK_CUDA(DataGradientCalls::Run(StreamOf(ctx).cudnn(), layouts_, data_,
                                            Factors(type_, add), {head, weight, out}, workspace));
}

void CudnnConvolution::WeightGradient(RunContext ctx, const void* head, const void* data, void* out,
                                      bool add, void* workspace) const {
  MXTRAIN_CHECK_CUDA(WeightGradientCalls::Run(StreamOf(ctx).cudnn(), layouts_, weight_,
                                              Factors(type_, add), {head, data, out}, workspace));
}

}  // namespace mxtrain::cuda
