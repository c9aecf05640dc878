// cuDNN's calls from before its graph interface, which it has deprecated and still serves.
#include "mxtrain/device/cuda/cudnn_convolution.h"

#include <iterator>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/planning_handle.h"

namespace mxtrain::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 30;  // bytes
constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;  // of an array that these calls take

int Int(int64_t value) {
  return static_cast<int>(value);
}

cudnnDataType_t ComputeType(DType type) {
  return type == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// The arithmetic that may be used at most.
cudnnMathType_t MathType(const ConvolutionOptions& options) {
  if (options.type == DType::kFloat64) return CUDNN_DEFAULT_MATH;
  if (options.type == DType::kFloat32) return options.math == ConvolutionMath::kTf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return CUDNN_TENSOR_OP_MATH;
}

void Describe(const ConvolutionShape& s, const ConvolutionOptions& options, const ConvolutionDescriptor& descriptor) {
  MXTRAIN_CHECK_CUDA(cudnnSetConvolution2dDescriptor(descriptor.get(), Int(s.pad[0]), Int(s.pad[1]), Int(s.stride[0]), Int(s.stride[1]),
                                                     Int(s.dilate[0]), Int(s.dilate[1]), CUDNN_CROSS_CORRELATION, ComputeType(options.type)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionGroupCount(descriptor.get(), Int(s.groups)));
  MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(descriptor.get(), MathType(options)));
}

// Errors of Fourier's method follow the largest element of an image, not those under a window.
bool IsFourier(cudnnConvolutionFwdAlgo_t a) {
  return a == CUDNN_CONVOLUTION_FWD_ALGO_FFT || a == CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING;
}
bool IsFourier(cudnnConvolutionBwdDataAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT || a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING;
}
bool IsFourier(cudnnConvolutionBwdFilterAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT || a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING;
}
bool IsWinograd(cudnnConvolutionFwdAlgo_t a) {
  return a == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD || a == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
}
bool IsWinograd(cudnnConvolutionBwdDataAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD || a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED;
}
bool IsWinograd(cudnnConvolutionBwdFilterAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD || a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
}

template <typename Result>
bool Allowed(const Result& r, const ConvolutionOptions& options) {
  if (r.status != CUDNN_STATUS_SUCCESS || static_cast<int64_t>(r.memory) > kMostWorkspace || IsFourier(r.algo)) return false;
  if (options.deterministic && r.determinism != CUDNN_DETERMINISTIC) return false;
  if (options.math == ConvolutionMath::kPlain && IsWinograd(r.algo)) return false;
  return options.type != DType::kFloat32 || options.math == ConvolutionMath::kTf32 || r.mathType == CUDNN_FMA_MATH ||
         r.mathType == CUDNN_DEFAULT_MATH;
}

// Takes the first result that is allowed: they come fastest first. The arithmetic of float32 stays what it was described as.
template <typename Part, typename Result>
bool Take(const Result* results, int count, const ConvolutionOptions& options, Part* part) {
  const Result* found = std::find_if(results, results + count, [&](const Result& r) { return Allowed(r, options); });
  if (found == results + count) return false;
  part->algorithm = found->algo;
  part->deterministic = found->determinism == CUDNN_DETERMINISTIC;
  if (MathType(options) != CUDNN_FMA_MATH) MXTRAIN_CHECK_CUDA(cudnnSetConvolutionMathType(part->descriptor.get(), found->mathType));
  return true;
}

bool Fits(const ConvolutionShape& s) {
  const int64_t sizes[] = {s.batch * s.in_channels * s.in[0] * s.in[1], s.batch * s.out_channels * s.out[0] * s.out[1],
                           s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1]};
  return std::all_of(std::begin(sizes), std::end(sizes), [](int64_t size) { return size > 0 && size <= kMostElements; }) &&
         std::max({s.pad[0], s.pad[1], s.stride[0], s.stride[1], s.dilate[0], s.dilate[1]}) <= kMostElements;
}

}  // namespace

struct CudnnConvolution::Factors {
  float one = 1, beta;
  double wide_one = 1, wide_beta;
  bool wide;

  Factors(DType type, bool add) : beta(add ? 1 : 0), wide_beta(add ? 1 : 0), wide(type == DType::kFloat64) {}
  const void* Alpha() const { return wide ? static_cast<const void*>(&wide_one) : &one; }
  const void* Beta() const { return wide ? static_cast<const void*>(&wide_beta) : &beta; }
};

CudnnConvolution::CudnnConvolution(const ConvolutionShape& s, const ConvolutionOptions& options) : type_(options.type) {
  const cudnnDataType_t type = CudnnType(options.type);
  const cudnnTensorFormat_t format = options.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
  MXTRAIN_CHECK_CUDA(
      cudnnSetTensor4dDescriptor(data_form_.get(), format, type, Int(s.batch), Int(s.in_channels), Int(s.in[0]), Int(s.in[1])));
  MXTRAIN_CHECK_CUDA(
      cudnnSetTensor4dDescriptor(out_form_.get(), format, type, Int(s.batch), Int(s.out_channels), Int(s.out[0]), Int(s.out[1])));
  MXTRAIN_CHECK_CUDA(cudnnSetFilter4dDescriptor(weight_form_.get(), type, format, Int(s.out_channels), Int(s.in_channels / s.groups),
                                                Int(s.kernel[0]), Int(s.kernel[1])));
  Describe(s, options, forward_.descriptor);
  Describe(s, options, data_.descriptor);
  Describe(s, options, weight_.descriptor);
}

// Asks the model, and then for the bytes that the choice needs.
bool CudnnConvolution::Choose(int device, const ConvolutionOptions& options) {
  const PlanningHandle handle(device);
  int count = 0;
  size_t bytes = 0;
  if (options.forward) {
    cudnnConvolutionFwdAlgoPerf_t results[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionForwardAlgorithm_v7(handle.get(), data_form_.get(), weight_form_.get(), forward_.descriptor.get(),
                                                              out_form_.get(), CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, results));
    if (!Take(results, count, options, &forward_)) return false;
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionForwardWorkspaceSize(handle.get(), data_form_.get(), weight_form_.get(), forward_.descriptor.get(),
                                                               out_form_.get(), forward_.algorithm, &bytes));
    forward_.workspace = static_cast<int64_t>(bytes);
  }
  if (options.data_gradient) {
    cudnnConvolutionBwdDataAlgoPerf_t results[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle.get(), weight_form_.get(), out_form_.get(), data_.descriptor.get(),
                                                                   data_form_.get(), CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &count, results));
    if (!Take(results, count, options, &data_)) return false;
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionBackwardDataWorkspaceSize(handle.get(), weight_form_.get(), out_form_.get(), data_.descriptor.get(),
                                                                    data_form_.get(), data_.algorithm, &bytes));
    data_.workspace = static_cast<int64_t>(bytes);
  }
  if (options.weight_gradient) {
    cudnnConvolutionBwdFilterAlgoPerf_t results[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle.get(), data_form_.get(), out_form_.get(), weight_.descriptor.get(),
                                                                     weight_form_.get(), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &count,
                                                                     results));
    if (!Take(results, count, options, &weight_)) return false;
    MXTRAIN_CHECK_CUDA(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle.get(), data_form_.get(), out_form_.get(), weight_.descriptor.get(),
                                                                      weight_form_.get(), weight_.algorithm, &bytes));
    weight_.workspace = static_cast<int64_t>(bytes);
  }
  return true;
}

std::shared_ptr<const CudnnConvolution> CudnnConvolution::Make(int device, const ConvolutionShape& shape, const ConvolutionOptions& options) {
  if (!Fits(shape)) return nullptr;
  const std::shared_ptr<CudnnConvolution> made(new CudnnConvolution(shape, options));
  return made->Choose(device, options) ? made : nullptr;
}

void CudnnConvolution::Forward(CudaStream& stream, const void* data, const void* weight, void* out, bool add, void* workspace) const {
  const Factors f(type_, add);
  MXTRAIN_CHECK_CUDA(cudnnConvolutionForward(stream.cudnn(), f.Alpha(), data_form_.get(), data, weight_form_.get(), weight,
                                             forward_.descriptor.get(), forward_.algorithm, workspace, static_cast<size_t>(forward_.workspace),
                                             f.Beta(), out_form_.get(), out));
}

void CudnnConvolution::DataGradient(CudaStream& stream, const void* head, const void* weight, void* out, bool add, void* workspace) const {
  const Factors f(type_, add);
  MXTRAIN_CHECK_CUDA(cudnnConvolutionBackwardData(stream.cudnn(), f.Alpha(), weight_form_.get(), weight, out_form_.get(), head,
                                                  data_.descriptor.get(), data_.algorithm, workspace, static_cast<size_t>(data_.workspace),
                                                  f.Beta(), data_form_.get(), out));
}

void CudnnConvolution::WeightGradient(CudaStream& stream, const void* head, const void* data, void* out, bool add, void* workspace) const {
  const Factors f(type_, add);
  MXTRAIN_CHECK_CUDA(cudnnConvolutionBackwardFilter(stream.cudnn(), f.Alpha(), data_form_.get(), data, out_form_.get(), head,
                                                    weight_.descriptor.get(), weight_.algorithm, workspace,
                                                    static_cast<size_t>(weight_.workspace), f.Beta(), weight_form_.get(), out));
}

}  // namespace mxtrain::cuda
