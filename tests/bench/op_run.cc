// SPDX-License-Identifier: Apache-2.0
#include "op_run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/operator/kernel.h"
#include "tests/support/host_space.h"

namespace mxtrain::bench {
namespace {

constexpr Values kAuxValues = {0, 1};  // variances are positive
constexpr Values kHeadValues = {-1, 1};

const Values& ValuesOf(const OpCase& c, size_t argument) {
  return c.values[std::min(argument, c.values.size() - 1)];
}

// Every stored element; `stream` makes arrays differ.
void Fill(const TBlob& blob, const Values& values, uint64_t stream) {
  SwitchType(blob.type, "op_bench", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* x = blob.dptr<T>();
    ParallelFor(blob.StoredSize(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double at = UniformAt(1, stream, 0, static_cast<uint64_t>(i)),
                     value = values.low + (values.high - values.low) * at;
        x[i] = ElementOf<T>(values.integers ? std::floor(value) : value);
      }
    });
  });
}

int64_t BytesOf(const std::vector<TBlob>& blobs) {
  return std::accumulate(blobs.begin(), blobs.end(), int64_t{0}, [](int64_t sum, const TBlob& b) {
    return sum + b.layout.Bytes(b.shape, b.type);
  });
}
int64_t BytesOf(const std::vector<TensorSpec>& specs) {
  return std::accumulate(specs.begin(), specs.end(), int64_t{0},
                         [](int64_t sum, const TensorSpec& s) { return sum + s.Bytes(); });
}
// Of the blobs that are given.
int64_t BytesGiven(const std::vector<TBlob>& blobs) {
  std::vector<TBlob> given = blobs;
  std::erase_if(given, [](const TBlob& b) { return b.data == nullptr; });
  return BytesOf(given);
}

BackwardReads ReadsOf(const OperatorProperty& property, const Plan& plan, size_t inputs,
                      size_t outputs) {
  if (plan.backward_reads) return *plan.backward_reads;
  const auto ids = [](size_t first, size_t count) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), static_cast<int>(first));
    return numbers;
  };
  const std::vector<int> read =
      property.DeclareBackwardDependency(ids(0, static_cast<size_t>(property.NumVisibleOutputs())),
                                         ids(outputs, inputs), ids(outputs + inputs, outputs));
  const auto among = [&read](size_t first, size_t count) {
    std::vector<bool> found(count);
    for (const int id : read) {
      const size_t i = static_cast<size_t>(id);
      if (i >= first && i < first + count) found[i - first] = true;
    }
    return found;
  };
  return {among(0, outputs), among(outputs, inputs), among(outputs + inputs, outputs)};
}

// An optimizer's step, which training runs in place of the weight.
bool IsUpdate(const OperatorProperty& property) {
  const int arguments = static_cast<int>(property.ListArguments().size());
  for (int i = 0; i < arguments; ++i) {
    if (property.HasGradient(i)) return false;
  }
  return !property.ListAuxiliaryStates().empty();
}

// Calls a kernel.
class KernelRun final : public OpRun {
 public:
  KernelRun(const OpCase& c, const OpSignature& signature, bool backward, Runtime& runtime)
      : c_(c), s_(signature), backend_(runtime.backend(Context::cpu())) {
    MakePlan(backward, runtime.operators());
    if (backward) reads_ = ReadsOf(*s_.property, plan_, s_.in.size(), s_.out.size());
    MakeForward();
    if (backward) MakeBackward();
    MakeScratch();
    op_ = plan_.make();
    kernel_ = plan_.kernel;
    if (!plan_.out.empty()) layout_ = plan_.out[0].Name();
  }

  void Forward() override { op_->Forward({forward_ctx_, in_, out_req_, out_, aux_}); }
  void Backward() override {
    op_->Backward({backward_ctx_, heads_, backward_in_, backward_out_, grad_req_, grads_, aux_});
  }
  bool alternates() const override { return false; }

 private:
  struct Free {
    Backend* backend;
    void operator()(void* data) const { backend->Free(Context::cpu(), data); }
  };

  void MakePlan(bool backward, const OperatorRegistry& registry) {
    const std::vector<std::optional<Layout>> plain_in(s_.in.size(), std::optional(Layout())),
        plain_aux(s_.aux.size(), std::optional(Layout()));
    out_req_.assign(s_.out.size(), OpReqType::kWriteTo);
    if (backward) {
      for (const bool computed : ComputedGradients(s_))
        grad_req_.push_back(computed ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    PlanRequest request;
    request.is_train = true;
    request.needs_backward = backward;
    request.threads = backend_.threads();
    request.in = s_.in;
    request.out = s_.out;
    request.aux = s_.aux;
    request.in_layout = plain_in;
    request.aux_layout = plain_aux;
    request.out_req = out_req_;
    request.grad_req = grad_req_;
    plan_ = s_.property->CreatePlan(registry, request, backend_);
  }

  void MakeForward() {
    for (size_t i = 0; i < s_.in.size(); ++i)
      in_.push_back(NewFilled(s_.in[i], plan_.in[i], ValuesOf(c_, i)));
    for (size_t i = 0; i < s_.out.size(); ++i) {
      const bool read = i < visible() || (!reads_.out_data.empty() && reads_.out_data[i]);
      if (!read) out_req_[i] = OpReqType::kNullOp;  // as a net does
      out_.push_back(read ? New(s_.out[i], plan_.out[i]) : NotGiven(s_.out[i], plan_.out[i]));
    }
    for (size_t i = 0; i < s_.aux.size(); ++i)
      aux_.push_back(NewFilled(s_.aux[i], plan_.aux[i], kAuxValues));
    forward_bytes_ = BytesOf(in_) + BytesGiven(out_) + 2 * BytesOf(aux_);
    if (!IsUpdate(*s_.property)) return;
    for (const InplacePair& pair : plan_.forward_inplace) {
      const size_t to = static_cast<size_t>(pair.to);
      out_[to].data = in_[static_cast<size_t>(pair.from)].data;
      out_req_[to] = OpReqType::kWriteInplace;
    }
  }

  void MakeBackward() {
    for (size_t i = 0; i < s_.out.size(); ++i) {
      heads_.push_back(Unread(out_[i]));
      if (reads_.out_grad[i] && i < visible())
        heads_[i] = NewFilled(s_.out[i], plan_.out[i], kHeadValues);
      backward_out_.push_back(reads_.out_data[i] ? out_[i] : Unread(out_[i]));
    }
    for (size_t i = 0; i < s_.in.size(); ++i) {
      backward_in_.push_back(reads_.in_data[i] ? BackwardInput(i) : Unread(in_[i]));
      grads_.push_back(grad_req_[i] == OpReqType::kNullOp ? Unread(in_[i]) : NewGradient(i));
    }
    for (const int64_t bytes : plan_.saved) saved_.push_back(NewBytes(bytes));
    backward_bytes_ = BytesGiven(heads_) + BytesGiven(backward_in_) + BytesGiven(backward_out_) +
                      BytesGiven(grads_) + BytesOf(saved_);
  }

  size_t visible() const { return static_cast<size_t>(s_.property->NumVisibleOutputs()); }

  TBlob BackwardInput(size_t i) {
    const bool differs = i < plan_.backward_in.size() && plan_.backward_in[i] &&
                         *plan_.backward_in[i] != plan_.in[i];
    return differs ? NewFilled(s_.in[i], *plan_.backward_in[i], ValuesOf(c_, i)) : in_[i];
  }
  TBlob NewGradient(size_t i) {
    if (i >= plan_.grad_layout.size() || !plan_.grad_layout[i]) return New(s_.in[i], plan_.in[i]);
    const TypedLayout& own = *plan_.grad_layout[i];
    return New({s_.in[i].shape, own.type, Layout()}, own.layout);
  }

  void MakeScratch() {
    std::vector<TShape> shapes;
    for (const TensorSpec& spec : s_.in) shapes.push_back(spec.shape);
    forward_resources_ = Answer(s_.property->ForwardResource(shapes));
    if (!grad_req_.empty()) backward_resources_ = Answer(s_.property->BackwardResource(shapes));
    const RunContext run{Context::cpu(), nullptr};
    forward_ctx_ = {true, run, forward_resources_, saved_, NewBytes(plan_.forward_workspace), {}};
    backward_ctx_ = {true, run, backward_resources_, saved_, NewBytes(plan_.backward_workspace),
                     {}};
  }
  std::vector<Resource> Answer(const std::vector<ResourceRequest>& requests) {
    std::vector<Resource> resources;
    for (const ResourceRequest& request : requests) {
      const bool scratch = request.type == ResourceRequest::kTempSpace,
                 unsized = scratch && request.bytes == ResourceRequest::kUnknownSize;
      resources.push_back({request.type,
                           scratch && !unsized ? NewBytes(request.bytes).data : nullptr,
                           request.bytes, &random_, StreamOf("op_bench"), "op_bench",
                           unsized ? &grown_.emplace_back() : nullptr});
    }
    return resources;
  }

  TBlob New(const TensorSpec& spec, const Layout& layout) {
    const int64_t bytes = std::max<int64_t>(layout.Bytes(spec.shape, spec.type), 1);
    std::unique_ptr<void, Free> memory(backend_.Allocate(Context::cpu(), bytes), Free{&backend_});
    if (!memory) Throw(ErrorKind::kMemory, "no memory for {}", FormatBytes(bytes));
    memory_.push_back(std::move(memory));
    return {memory_.back().get(), spec.shape, spec.type, layout, Context::cpu()};
  }
  TBlob NewFilled(const TensorSpec& spec, const Layout& layout, const Values& values) {
    const TBlob blob = New(spec, layout);
    Fill(blob, values, memory_.size());
    return blob;
  }
  static TBlob NotGiven(const TensorSpec& spec, const Layout& layout) {
    return {nullptr, spec.shape, spec.type, layout, Context::cpu()};
  }
  TBlob NewBytes(int64_t bytes) { return New({TShape{bytes}, DType::kUint8, Layout()}, Layout()); }
  static TBlob Unread(TBlob blob) {
    blob.data = nullptr;
    return blob;
  }

  const OpCase& c_;
  const OpSignature& s_;
  Backend& backend_;
  Plan plan_;
  BackwardReads reads_;  // empty without a backward pass
  std::unique_ptr<Operator> op_;
  RandomState random_{1, 1};
  std::vector<std::unique_ptr<void, Free>> memory_;  // of all arrays
  std::vector<OpReqType> out_req_, grad_req_;
  std::vector<TBlob> in_, out_, aux_, heads_, backward_in_, backward_out_, grads_, saved_;
  std::vector<Resource> forward_resources_, backward_resources_;
  std::deque<test::HostSpace> grown_;  // of resources of unknown size
  OpContext forward_ctx_, backward_ctx_;
};

// Binds a net of a composite operator alone. Every argument is an input, so it stays plain and
// nothing is computed in advance.
class NetRun final : public OpRun {
 public:
  NetRun(const OpCase& c, const OpSignature& signature, bool backward, Runtime& runtime) {
    const std::vector<std::string> names = signature.property->ListArguments();
    std::vector<Symbol> variables;
    executor::BindRequest request;
    const std::vector<bool> computed = ComputedGradients(signature);
    int64_t gradient_bytes = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      const TensorSpec& spec = signature.in[i];
      variables.push_back(Symbol::Variable(names[i]));
      request.inputs.insert(names[i]);
      request.shapes[names[i]] = spec.shape;
      request.types[names[i]] = spec.type;
      inputs_.push_back(NewFilled(runtime, spec, ValuesOf(c, i)));
      if (!backward || !computed[i]) continue;
      request.grad_req[names[i]] = executor::GradReq::kWrite;
      gradient_bytes += spec.Bytes();
    }
    const Symbol net = Symbol::Create(runtime.operators(), c.op, "net", c.kwargs, variables);
    executor_ = Executor::SimpleBind(runtime, net, std::move(request));
    const std::vector<TensorSpec> visible(
        signature.out.begin(), signature.out.begin() + signature.property->NumVisibleOutputs());
    if (backward) {
      for (const TensorSpec& spec : visible)
        heads_.push_back(NewFilled(runtime, spec, kHeadValues));
    }
    kernel_ = "composite";
    forward_bytes_ = BytesOf(signature.in) + BytesOf(visible);
    backward_bytes_ = forward_bytes_ + gradient_bytes;
  }

  void Forward() override {
    executor_->Forward(inputs_);
    for (const NDArray& output : executor_->outputs()) output.WaitToRead();
  }
  void Backward() override {
    executor_->Backward(heads_);
    for (const auto& [name, gradient] : executor_->grads()) gradient.WaitToRead();
  }
  bool alternates() const override { return true; }

 private:
  NDArray NewFilled(Runtime& runtime, const TensorSpec& spec, const Values& values) {
    NDArray array(runtime, spec.shape, spec.type);
    Fill(array.data(), values, ++streams_);
    return array;
  }

  uint64_t streams_ = 0;
  std::vector<NDArray> inputs_, heads_;
  std::unique_ptr<Executor> executor_;
};

std::vector<TensorSpec> Specs(const std::vector<TShape>& shapes, const std::vector<DType>& types) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) specs.push_back({shapes[i], types[i], Layout()});
  return specs;
}

}  // namespace

OpSignature Infer(const OpCase& c, const OperatorRegistry& registry) {
  OpSignature s;
  s.property = registry.Create(c.op, c.kwargs);
  const size_t arguments = s.property->ListArguments().size(),
               outputs = static_cast<size_t>(s.property->NumOutputs()),
               states = s.property->ListAuxiliaryStates().size();
  if (c.shapes.size() > arguments)
    Throw(ErrorKind::kConfig, "{} shapes for {} arguments", c.shapes.size(), arguments);
  std::vector<TShape> in = c.shapes, out(outputs), aux(states);
  in.resize(arguments);
  std::vector<DType> in_types(arguments, DType::kFloat32), out_types(outputs, DType::kUnknown),
      aux_types(states, DType::kUnknown);
  if (!s.property->InferShape(&in, &out, &aux) ||
      !s.property->InferType(&in_types, &out_types, &aux_types))
    Throw(ErrorKind::kConfig, "shapes or types stay unknown");
  s.in = Specs(in, in_types);
  s.out = Specs(out, out_types);
  s.aux = Specs(aux, aux_types);
  return s;
}

std::vector<bool> ComputedGradients(const OpSignature& signature) {
  const OperatorProperty& property = *signature.property;
  std::vector<bool> computed(property.ListArguments().size());
  for (size_t i = 0; i < computed.size(); ++i)
    computed[i] = property.HasGradient(static_cast<int>(i));
  for (const InplacePair& pair : property.BackwardIdentityOption()) {
    const size_t from = static_cast<size_t>(pair.from), to = static_cast<size_t>(pair.to);
    if (signature.out[from].Bytes() == signature.in[to].Bytes()) computed[to] = false;
  }
  return computed;
}

std::unique_ptr<OpRun> NewOpRun(const OpCase& c, const OpSignature& signature, bool backward,
                                Runtime& runtime) {
  const auto kernels =
      runtime.operators().Kernels(signature.property->TypeString(), DeviceType::kCPU);
  if (kernels.empty()) return std::make_unique<NetRun>(c, signature, backward, runtime);
  return std::make_unique<KernelRun>(c, signature, backward, runtime);
}

}  // namespace mxtrain::bench
