// SPDX-License-Identifier: Apache-2.0
// Graphs first (internal/cudnn_graph.h). For what they refuse, cuDNN's calls from before them
// (internal/cudnn_calls.h).
#include "mxtrain/device/cuda/cudnn_convolution.h"

#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/internal/cudnn_calls.h"
#include "mxtrain/device/cuda/internal/cudnn_graph.h"
#include "mxtrain/device/cuda/internal/planning_handle.h"

namespace mxtrain::cuda {
namespace {

constexpr CudnnBackend kCudnn = {cudnnBackendCreateDescriptor, cudnnBackendDestroyDescriptor,
                                 cudnnBackendSetAttribute,     cudnnBackendGetAttribute,
                                 cudnnBackendFinalize,         cudnnBackendExecute,
                                 cudnnGetErrorString};

constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;  // of an array that these calls support
// Algorithms measured per part: the fastest ones by cuDNN's model.
constexpr size_t kMostMeasured = 4;
constexpr int kRuns = 3;  // per measured algorithm; the fastest counts

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
// nullopt if cuDNN refuses it. What is clearly slower than `best`, of another kernel, is timed
// once.
template <typename Work>
std::optional<double> TimeOf(cudaStream_t stream, double best, const Work& work) {
  constexpr double kHopeless = 1.5;
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
    if (least / 1e3 > kHopeless * best) break;
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

// Everything that the choice for a task depends on.
std::string KeyOf(const std::string& task, const ConvolutionShape& s, const ConvolutionOptions& o,
                  const std::string& machine) {
  return format(
      "{}: data {}x{}x{}x{}, weight {}x{}x{}x{}, stride {}x{}, dilate {}x{}, pad {}x{}, groups {}; "
      "{}, {}, math {}{}; {}",
      task, s.batch, s.in_channels, s.in[0], s.in[1], s.out_channels, s.in_channels / s.groups,
      s.kernel[0], s.kernel[1], s.stride[0], s.stride[1], s.dilate[0], s.dilate[1], s.pad[0],
      s.pad[1], s.groups, mxtrain::NameOf(o.type),
      o.channels_last ? "channels last" : "channels first", NameOf(o.math),
      o.deterministic ? ", deterministic" : "", machine);
}

std::string NameOf(const ConvolutionEpilogue& e) {
  return format("{}{}{}", e.sum ? " + sum" : "",
                e.bias ? format(" + bias of {}", mxtrain::NameOf(e.bias_type)) : "",
                e.relu ? " + relu" : "");
}
std::string NameOf(const OutputSums&) {
  return " + sums of outputs and squares";
}
std::string NameOf(const ReluGate&) {
  return " + gradients of relu, scale and shift";
}
// "convolution graph, forward + sum + bias of float32 + relu", "..., forward, accumulated".
std::string NameOf(const GraphTask& task, const char* part) {
  return format("convolution graph, {}{}{}", part,
                std::visit([](const auto& end) { return NameOf(end); }, task.end),
                task.add ? ", accumulated" : "");
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

// Random numbers from -1 to 1.
template <typename T>
std::vector<char> RandomBlock() {
  std::vector<T> block(size_t{1} << 16);
  std::minstd_rand random;
  for (T& value : block) value = static_cast<T>(static_cast<float>(random() % 4096) / 2048 - 1);
  const auto* bytes = reinterpret_cast<const char*>(block.data());
  return {bytes, bytes + block.size() * sizeof(T)};
}
std::vector<char> RandomBlock(DType type) {
  switch (type) {
    case DType::kFloat64:
      return RandomBlock<double>();
    case DType::kFloat16:
      return RandomBlock<float16>();
    case DType::kBfloat16:
      return RandomBlock<bfloat16>();
    default:
      return RandomBlock<float>();
  }
}

// One block, repeated. Zeros would need less power, which clocks follow.
void FillWithRandom(void* array, int64_t bytes, DType type, cudaStream_t stream) {
  const std::vector<char> block = RandomBlock(type);
  auto* to = static_cast<char*>(array);
  const auto size = static_cast<size_t>(bytes);
  size_t done = std::min(size, block.size());
  MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(to, block.data(), done, cudaMemcpyHostToDevice, stream));
  MXTRAIN_CHECK_CUDA(cudaStreamSynchronize(stream));  // the block ends here
  while (done < size) {
    const size_t more = std::min(done, size - done);
    MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(to + done, to, more, cudaMemcpyDeviceToDevice, stream));
    done += more;
  }
}

// Tries kernels on arrays of random numbers, which live as long as this object. Without space for
// them none is tried.
class Trial {
 public:
  Trial(const Question& question, std::span<const GraphArray> arrays)
      : question_(question), lender_(LenderOf(question.backend)) {
    for (const GraphArray& array : arrays) {
      if (array.place) Take(array.elements, array.type, &(arrays_.*array.place));
    }
  }
  // The arrays of the calls from before graphs.
  explicit Trial(const Question& question)
      : question_(question), lender_(LenderOf(question.backend)) {
    const Sizes n(question.shape);
    const DType type = question.options.type;
    Take(n.data, type, &arrays_.data);
    Take(n.weight, type, &arrays_.weight);
    Take(n.out, type, &arrays_.out);
  }

  // Of run(arrays, workspace), which returns a status.
  template <typename Run>
  std::optional<double> SecondsOf(int64_t workspace, const Run& run) {
    if (!whole_) return std::nullopt;
    const std::unique_ptr<Loan> loan = Borrow(std::max<int64_t>(workspace, 1));
    if (!loan) return std::nullopt;
    const std::optional<double> seconds =
        TimeOf(question_.handle.stream(), best_, [&] { return run(arrays_, loan->get()); });
    if (seconds) best_ = std::min(best_, *seconds);
    return seconds;
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
  void Take(int64_t elements, DType type, void** array) {
    const int64_t bytes = elements * SizeOf(type);
    std::unique_ptr<Loan> loan = whole_ ? Borrow(bytes) : nullptr;
    whole_ = loan != nullptr;
    if (!whole_) return;
    FillWithRandom(loan->get(), bytes, type, question_.handle.stream());
    *array = loan->get();
    loans_.push_back(std::move(loan));
  }

  const Question& question_;
  const std::shared_ptr<const MemoryLender> lender_;
  std::vector<std::unique_ptr<Loan>> loans_;
  GraphArrays arrays_;
  bool whole_ = true;
  double best_ = std::numeric_limits<double>::infinity();  // seconds, until now
};

// Whether a choice may be made by a clock.
enum class By { kTime, kModel };

// The plan of the engine that is chosen for a task, and its name; null if there is none.
struct NamedPlan {
  std::shared_ptr<const CudnnPlan> plan;
  std::string engine;
};
NamedPlan ChoosePlan(const Question& q, const GraphTask& task, const char* part, By by) {
  const auto graph = CudnnGraph::Make(kCudnn, {q.handle.get()}, task);
  if (!graph) return {};
  std::vector<std::optional<std::shared_ptr<const CudnnPlan>>> plans(graph->engines().size());
  const auto plan_of = [&](size_t i) -> const CudnnPlan* {
    if (!plans[i]) {
      const auto made = graph->PlanOf(i);
      plans[i] = made ? *made : nullptr;
    }
    return plans[i]->get();
  };
  std::optional<Trial> trial;  // from the first measurement on
  KernelChoices::Stopwatch seconds_of = [&](size_t i) -> std::optional<double> {
    const CudnnPlan* plan = plan_of(i);
    if (!plan) return std::nullopt;
    if (!trial) trial.emplace(q, graph->arrays());
    return trial->SecondsOf(plan->workspace(), [&](const GraphArrays& arrays, void* workspace) {
      return plan->Run(q.handle.get(), arrays, workspace);
    });
  };
  if (by == By::kModel) seconds_of = {};
  const std::optional<size_t> chosen = ChooseUsable(
      ChoicesOf(q.backend), KeyOf(NameOf(task, part), q.shape, q.options, q.handle.machine()),
      graph->engines(), seconds_of, [&](size_t i) { return plan_of(i) != nullptr; });
  if (!chosen) return {};
  return {*plans[*chosen], graph->engines()[*chosen]};
}

// The plan of the engine of this name; if there is none, of another; null if there is none either.
std::shared_ptr<const CudnnPlan> PlanOfEngine(const Question& q, const GraphTask& task,
                                              const std::string& engine) {
  const auto graph = CudnnGraph::Make(kCudnn, {q.handle.get()}, task);
  if (!graph) return nullptr;
  const std::vector<std::string>& engines = graph->engines();
  const auto found = std::find(engines.begin(), engines.end(), engine);
  if (found != engines.end()) {
    if (const auto plan = graph->PlanOf(static_cast<size_t>(found - engines.begin()))) return *plan;
  }
  for (size_t i = 0; i < engines.size(); ++i) {
    if (const auto plan = graph->PlanOf(i)) return *plan;
  }
  return nullptr;
}

// False if no graph of the part has a plan.
template <typename Calls, typename Part>
bool ChoosePlans(const Question& q, bool add, By by, Part* part) {
  GraphTask task{Calls::kPart, q.shape, q.options, add, {}};
  const NamedPlan chosen = ChoosePlan(q, task, Calls::kName, by);
  if (!chosen.plan) return false;
  part->plans[add] = chosen.plan;
  // Forward is planned as if its result were assigned; within a backward pass it may be added.
  if (Calls::kPart == ConvolutionPart::kForward) {
    task.add = !add;
    part->plans[!add] = PlanOfEngine(q, task, chosen.engine);
    if (!part->plans[!add]) return false;
  }
  for (const auto& plan : part->plans) {
    if (!plan) continue;
    part->workspace = std::max(part->workspace, plan->workspace());
    part->deterministic = part->deterministic && plan->deterministic();
  }
  return true;
}

// False if no algorithm is allowed, or cuDNN cannot run those that are.
template <typename Calls, typename Part>
bool ChooseAlgorithm(const Question& q, bool add, By by, Part* part) {
  const Candidates<Calls> candidates(q.handle.get(), q.layouts, q.options, *part);
  if (candidates.names.empty()) return false;
  const auto take = [&](size_t i) {
    return candidates.Take(i, q.handle.get(), q.layouts, part) == CUDNN_STATUS_SUCCESS;
  };
  std::optional<Trial> trial;  // from the first measurement on
  KernelChoices::Stopwatch seconds_of = [&](size_t i) -> std::optional<double> {
    if (i >= kMostMeasured || !take(i)) return std::nullopt;
    if (!trial) trial.emplace(q);
    const Factors factors(q.options.type, add);
    return trial->SecondsOf(part->workspace, [&](const GraphArrays& arrays, void* workspace) {
      return Calls::Run(q.handle.get(), q.layouts, *part, factors, Calls::OperandsOf(arrays),
                        workspace);
    });
  };
  if (by == By::kModel) seconds_of = {};
  const std::string key =
      KeyOf(format("convolution, {}", Calls::kName), q.shape, q.options, q.handle.machine());
  return ChooseUsable(ChoicesOf(q.backend), key, candidates.names, seconds_of, take).has_value();
}

// For arrays that no plan takes: the first algorithm that needs no more workspace than the plans.
template <typename Calls, typename Part>
void ChooseStandIn(const Question& q, Part* part) {
  const int64_t workspace = part->workspace;
  const bool deterministic = part->deterministic;
  const Candidates<Calls> candidates(q.handle.get(), q.layouts, q.options, *part);
  for (size_t i = 0; i < candidates.names.size() && !part->stands_in; ++i) {
    part->stands_in = candidates.Take(i, q.handle.get(), q.layouts, part) == CUDNN_STATUS_SUCCESS &&
                      part->workspace <= workspace;
  }
  part->workspace = workspace;
  part->deterministic = deterministic;
}

template <typename Calls, typename Part>
bool Choose(const Question& q, bool add, By by, Part* part) {
  if (ChoosePlans<Calls>(q, add, by, part)) {
    ChooseStandIn<Calls>(q, part);
    return true;
  }
  part->plans = {};
  return ChooseAlgorithm<Calls>(q, add, by, part);
}

// Runs a part by its plan or by its algorithm.
template <typename Calls, typename Part>
void RunPart(RunContext ctx, const ConvolutionLayouts& layouts, const Part& part, DType type,
             bool add, const GraphArrays& arrays, void* workspace) {
  cudnnHandle_t handle = StreamOf(ctx).cudnn();
  const CudnnPlan* plan = part.plans[add].get();
  MXTRAIN_ASSERT(plan || !part.plans[!add]);
  if (plan && (arrays.IsAligned() || !part.stands_in)) {
    MXTRAIN_CHECK_CUDA(plan->Run(handle, arrays, workspace));
  } else {
    MXTRAIN_CHECK_CUDA(Calls::Run(handle, layouts, part, Factors(type, add),
                                  Calls::OperandsOf(arrays), workspace));
  }
}

// False, with nothing done, if an array is not aligned.
bool RunAligned(RunContext ctx, const CudnnPlan& plan, const GraphArrays& arrays, void* workspace) {
  if (!arrays.IsAligned()) return false;
  MXTRAIN_CHECK_CUDA(plan.Run(StreamOf(ctx).cudnn(), arrays, workspace));
  return true;
}

// Of a plan that may be missing.
int64_t WorkspaceOf(const std::shared_ptr<const CudnnPlan>& plan) {
  return plan ? plan->workspace() : 0;
}
bool IsDeterministic(const std::shared_ptr<const CudnnPlan>& plan) {
  return !plan || plan->deterministic();
}

// Whether to ask for what follows the products for batch norm's sake. It sums in float32; and the
// channels of a pixel must be aligned as arrays are: of others, for which cuDNN proposes engines on
// some devices, it is not known that they run.
bool MayHaveSums(const ConvolutionShape& shape, DType type) {
  return type != DType::kFloat64 && shape.in_channels * SizeOf(type) % kGraphAlignment == 0 &&
         shape.out_channels * SizeOf(type) % kGraphAlignment == 0;
}

// cuDNN takes what it reads without const, too.
void* Read(const void* array) {
  return const_cast<void*>(array);
}

}  // namespace

CudnnConvolution::CudnnConvolution(const ConvolutionShape& s, const ConvolutionOptions& options)
    : type_(options.type), out_channels_(s.out_channels) {
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
  const By by = options.deterministic ? By::kModel : By::kTime;
  const auto plan_ending = [&](ConvolutionPart part, const char* name, const GraphEnd& end) {
    return ChoosePlan(question, GraphTask{part, shape, options, false, end}, name, by).plan;
  };
  // What may be refused comes before what then need not be measured.
  if (options.sums) {
    if (!options.forward_adds && MayHaveSums(shape, options.type))
      made->sums_ = plan_ending(ConvolutionPart::kForward, ForwardCalls::kName, OutputSums());
    if (!made->sums_) return nullptr;
  }
  if (options.gated) {
    if (!options.data_gradient_adds && MayHaveSums(shape, options.type))
      made->gated_ =
          plan_ending(ConvolutionPart::kDataGradient, DataGradientCalls::kName, ReluGate());
    if (!made->gated_) return nullptr;
  }
  if (options.forward) {
    if (options.epilogue.any())
      made->fused_ = plan_ending(ConvolutionPart::kForward, ForwardCalls::kName, options.epilogue);
    // Beside one of them it is hardly ever used.
    if (!Choose<ForwardCalls>(question, options.forward_adds,
                              made->fused_ || made->sums_ ? By::kModel : by, &made->forward_))
      return nullptr;
  }
  if (options.data_gradient &&
      !Choose<DataGradientCalls>(question, options.data_gradient_adds,
                                 made->gated_ ? By::kModel : by, &made->data_))
    return nullptr;
  if (options.weight_gradient &&
      !Choose<WeightGradientCalls>(question, options.weight_gradient_adds, by, &made->weight_))
    return nullptr;
  return made;
}

int64_t CudnnConvolution::forward_workspace() const {
  return std::max({forward_.workspace, WorkspaceOf(fused_), WorkspaceOf(sums_)});
}

int64_t CudnnConvolution::backward_workspace() const {
  return std::max({data_.workspace, weight_.workspace, WorkspaceOf(gated_)});
}

bool CudnnConvolution::deterministic() const {
  return forward_.deterministic && data_.deterministic && weight_.deterministic &&
         IsDeterministic(fused_) && IsDeterministic(sums_) && IsDeterministic(gated_);
}

void CudnnConvolution::Forward(RunContext ctx, const void* data, const void* weight, void* out,
                               bool add, void* workspace) const {
  RunPart<ForwardCalls>(ctx, layouts_, forward_, type_, add,
                        {.data = Read(data), .weight = Read(weight), .out = out}, workspace);
}

bool CudnnConvolution::ForwardFused(RunContext ctx, const void* data, const void* weight,
                                    const void* bias, const void* sum, void* out,
                                    void* workspace) const {
  return RunAligned(ctx, *fused_,
                    {.data = Read(data),
                     .weight = Read(weight),
                     .out = out,
                     .bias = Read(bias),
                     .sum = Read(sum)},
                    workspace);
}

bool CudnnConvolution::ForwardSums(RunContext ctx, const void* data, const void* weight, void* out,
                                   float* sums, void* workspace) const {
  return RunAligned(ctx, *sums_,
                    {.data = Read(data),
                     .weight = Read(weight),
                     .out = out,
                     .sums = sums,
                     .square_sums = sums + out_channels_},
                    workspace);
}

void CudnnConvolution::DataGradient(RunContext ctx, const void* head, const void* weight, void* out,
                                    bool add, void* workspace) const {
  RunPart<DataGradientCalls>(ctx, layouts_, data_, type_, add,
                             {.data = out, .weight = Read(weight), .out = Read(head)}, workspace);
}

bool CudnnConvolution::DataGradientGated(RunContext ctx, const void* head, const void* weight,
                                         const Normalisation& n, void* gradient,
                                         float* scale_gradient, float* shift_gradient,
                                         void* workspace) const {
  return RunAligned(ctx, *gated_,
                    {.data = gradient,
                     .weight = Read(weight),
                     .out = Read(head),
                     .normalised = Read(n.data),
                     .mean = Read(n.mean),
                     .inverse = Read(n.inverse),
                     .scale = Read(n.scale),
                     .shift = Read(n.shift),
                     .scale_gradient = scale_gradient,
                     .shift_gradient = shift_gradient},
                    workspace);
}

void CudnnConvolution::WeightGradient(RunContext ctx, const void* head, const void* data, void* out,
                                      bool add, void* workspace) const {
  RunPart<WeightGradientCalls>(ctx, layouts_, weight_, type_, add,
                               {.data = Read(data), .weight = out, .out = Read(head)}, workspace);
}

}  // namespace mxtrain::cuda
