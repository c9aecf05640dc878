// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/internal/imperative_plan.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <list>
#include <unordered_map>

#include "mxtrain/operator/host_kernel.h"

namespace mxtrain::imperative {
namespace {

// Thread-safe.
class PlanCache {
 public:
  static std::shared_ptr<PlanCache> Of(Runtime& runtime) {
    return std::static_pointer_cast<PlanCache>(
        runtime.Extension("imperative", [] { return std::make_shared<PlanCache>(); }));
  }

  // Null if there is none.
  std::shared_ptr<CallPlan> Find(const std::string& key) {
    const MutexLock lock(mutex_);
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : Use(found->second);
  }
  // `plan`, or what another thread has added for the key since Find.
  std::shared_ptr<CallPlan> Add(std::string key, std::shared_ptr<CallPlan> plan) {
    std::shared_ptr<CallPlan> dropped;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    ++made_;
    if (const auto found = places_.find(key); found != places_.end()) return Use(found->second);
    if (plans_.size() >= kMostPlans) {
      places_.erase(plans_.back().key);
      dropped = std::move(plans_.back().plan);
      plans_.pop_back();
    }
    plans_.push_front({std::move(key), std::move(plan)});
    places_.emplace(plans_.front().key, plans_.begin());
    return plans_.front().plan;
  }
  int64_t made() {
    const MutexLock lock(mutex_);
    return made_;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<CallPlan> plan;
  };
  using Place = std::list<Entry>::iterator;

  const std::shared_ptr<CallPlan>& Use(Place place) MXTRAIN_REQUIRES(mutex_) {
    plans_.splice(plans_.begin(), plans_, place);
    return place->plan;
  }

  Mutex mutex_;
  std::list<Entry> plans_ MXTRAIN_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<std::string_view, Place> places_ MXTRAIN_GUARDED_BY(mutex_);  // by Entry::key
  int64_t made_ MXTRAIN_GUARDED_BY(mutex_) = 0;
};

void AppendSpecs(std::string* key, std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    fmt::format_to(std::back_inserter(*key), "|{}{}{}", static_cast<int>(array.dtype()),
                   array.shape().ToString(), static_cast<const void*>(array.layout().desc()));
  }
  *key += ';';
}

// Prefixes lengths and marks types, so that different parameters have different keys.
void AppendParam(std::string* key, const CallParam& param) {
  const auto text = [](const std::string& value) { return format("{}:{}", value.size(), value); };
  fmt::format_to(std::back_inserter(*key), "|{}={}", text(param.name), param.value.index());
  const auto append = [&](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      *key += text(value);
    } else if constexpr (std::is_same_v<T, TShape>) {
      *key += value.ToString();
    } else if constexpr (std::is_same_v<T, double>) {
      fmt::format_to(std::back_inserter(*key), ":{:x}", std::bit_cast<uint64_t>(value));
    } else {
      fmt::format_to(std::back_inserter(*key), ":{}", static_cast<int64_t>(value));
    }
  };
  std::visit(append, param.value);
}

// For any scalar, the key of the plans that take it.
std::string KeyOf(const Call& call, bool any_scalar) {
  std::string key = format("{}@{}:{}:{}{}", call.op, static_cast<int>(call.ctx.type), call.ctx.id,
                           static_cast<int>(call.req), call.is_train ? "t" : "");
  if (any_scalar) {
    key += "|scalar";
  } else {
    for (const CallParam& param : call.params.list()) AppendParam(&key, param);
  }
  key += ';';
  for (std::span<const NDArray> arrays : {call.in, call.aux, call.out}) AppendSpecs(&key, arrays);
  return key;
}

void CheckCount(const char* op, const char* what, size_t given,
                const std::vector<std::string>& wanted) {
  if (given == wanted.size()) return;
  const std::string names = wanted.empty() ? "" : format(" ({})", join(wanted, ", "));
  Throw(ErrorKind::kConfig, "{} takes {}{}, but got {}", op, Counted(wanted.size(), what), names,
        given);
}

std::vector<TShape> ShapesOf(std::span<const NDArray> arrays) {
  std::vector<TShape> shapes;
  for (const NDArray& array : arrays) shapes.push_back(array.shape());
  return shapes;
}

std::vector<DType> TypesOf(std::span<const NDArray> arrays) {
  std::vector<DType> types;
  for (const NDArray& array : arrays) types.push_back(array.dtype());
  return types;
}

std::vector<TensorSpec> Specs(const std::vector<TShape>& shapes, const std::vector<DType>& types) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < shapes.size(); ++i) specs.push_back({shapes[i], types[i], {}});
  return specs;
}

std::vector<std::optional<Layout>> LayoutsOf(std::span<const NDArray> arrays) {
  std::vector<std::optional<Layout>> layouts;
  for (const NDArray& array : arrays) layouts.emplace_back(array.layout());
  return layouts;
}

// An array whose shape or type differs from the one inferred from the others.
void CheckArrays(const char* op, const std::vector<std::string>& names,
                 std::span<const NDArray> arrays, const std::vector<TensorSpec>& specs) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape() == specs[i].shape && arrays[i].dtype() == specs[i].type) continue;
    Throw(ErrorKind::kConfig, "{}: {} is {} {}, but {} {} was expected", op, names[i],
          NameOf(arrays[i].dtype()), arrays[i].shape().ToString(), NameOf(specs[i].type),
          specs[i].shape.ToString());
  }
}

// The parameter that counts the inputs follows from the call.
Kwargs WithCount(const Call& call, const OperatorRegistry& registry) {
  Kwargs kwargs = call.params.ToKwargs();
  const std::string key = registry.CreateUninitialized(call.op)->NumArgsKey();
  const bool given = std::any_of(kwargs.begin(), kwargs.end(),
                                 [&](const auto& pair) { return pair.first == key; });
  if (!key.empty() && !given) kwargs.emplace_back(key, std::to_string(call.in.size()));
  return kwargs;
}

}  // namespace

CallPlan::CallPlan(const Call& call) : is_train_(call.is_train) {
  const OperatorRegistry& registry = call.runtime.operators();
  const std::shared_ptr<const OperatorProperty> property =
      registry.Create(call.op, WithCount(call, registry));
  const std::string name = property->TypeString();
  CheckCount(name.c_str(), "argument", call.in.size(), property->ListArguments());
  CheckCount(name.c_str(), "auxiliary state", call.aux.size(), property->ListAuxiliaryStates());
  num_visible_ = property->NumVisibleOutputs();
  Infer(call, *property);
  Choose(call, *property);
  if (lowered_) return;
  const DeviceType device = RunsOnHost(plan_) ? DeviceType::kCPU : call.ctx.type;
  const std::vector<const KernelEntry*> kernels = registry.Kernels(name, device);
  name_ = kernels.front()->op.c_str();
  // Another kernel might take some numbers and refuse others.
  takes_scalar_ = plan_.takes_scalar && kernels.size() == 1;
}

void CallPlan::Infer(const Call& call, const OperatorProperty& property) {
  const std::string name = property.TypeString();
  std::vector<std::string> out_names = property.ListOutputs();
  if (!call.out.empty()) {
    out_names.resize(static_cast<size_t>(num_visible_));
    CheckCount(name.c_str(), "output", call.out.size(), out_names);
  }
  std::vector<TShape> in = ShapesOf(call.in), aux = ShapesOf(call.aux), out = ShapesOf(call.out);
  std::vector<DType> in_types = TypesOf(call.in), aux_types = TypesOf(call.aux),
                     out_types = TypesOf(call.out);
  out.resize(static_cast<size_t>(property.NumOutputs()));
  out_types.resize(out.size(), DType::kUnknown);
  if (!property.InferShape(&in, &out, &aux))
    Throw(ErrorKind::kConfig, "{}: cannot infer the shape of the output", name);
  if (!property.InferType(&in_types, &out_types, &aux_types))
    Throw(ErrorKind::kConfig, "{}: cannot infer the type of the output", name);
  in_ = Specs(in, in_types);
  out_ = Specs(out, out_types);
  aux_ = Specs(aux, aux_types);
  CheckArrays(name.c_str(), property.ListArguments(), call.in, in_);
  CheckArrays(name.c_str(), property.ListAuxiliaryStates(), call.aux, aux_);
  CheckArrays(name.c_str(), out_names, call.out, out_);
  resources_ = property.ForwardResource(in);
}

void CallPlan::Choose(const Call& call, const OperatorProperty& property) {
  Backend& backend = call.runtime.backend(call.ctx);
  const std::vector<std::optional<Layout>> in_layout = LayoutsOf(call.in),
                                           aux_layout = LayoutsOf(call.aux);
  std::vector<OpReqType> out_req(out_.size(), OpReqType::kWriteTo);
  std::fill_n(out_req.begin(), num_visible_, call.req);
  PlanRequest request;
  request.ctx = call.ctx;
  request.threads = backend.threads();
  request.is_train = call.is_train;
  request.in = in_;
  request.out = out_;
  request.aux = aux_;
  request.in_layout = in_layout;
  request.aux_layout = aux_layout;
  request.out_req = out_req;
  if (LowersInstead(property, request, call.runtime.operators(), backend)) return;
  plan_ = PlanOnDevice(property, request, call.runtime);
  if (RunsOnHost(plan_)) {
    LogHostKernel(call.runtime, call.ctx, property.TypeString());
    // It has its own temporary space.
    for (ResourceRequest& of_device : resources_) of_device.bytes = 0;
  }
  for (size_t i = 0; i < out_.size(); ++i) out_[i].layout = plan_.out[i];
}

bool CallPlan::LowersInstead(const OperatorProperty& property, const PlanRequest& request,
                             const OperatorRegistry& registry, Backend& backend) {
  std::vector<TShape> shapes;
  for (const TensorSpec& spec : in_) shapes.push_back(spec.shape);
  Lowering graph(std::move(shapes), property.NumOutputs());
  if (!property.Lower(&graph)) return false;
  const auto kernels = registry.Kernels(property.TypeString(), request.ctx.type);
  if (std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry* kernel) {
        return kernel->plan(property, request, backend).has_value();
      }))
    return false;
  lowered_ = std::move(graph);
  return true;
}

std::unique_ptr<Operator> CallPlan::Borrow() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return plan_.make();  // by one thread at a time
  std::unique_ptr<Operator> op = std::move(idle_.back());
  idle_.pop_back();
  return op;
}

void CallPlan::Return(std::unique_ptr<Operator> op) {
  // Up to kMostPlans of them would hold pinned memory. (The destructor awaits the last copies.)
  if (RunsOnHost(plan_)) return;
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(op));
}

std::shared_ptr<CallPlan> PlanOf(const Call& call) {
  const std::shared_ptr<PlanCache> cache = PlanCache::Of(call.runtime);
  const bool has_scalar = call.params.Scalar().has_value();
  std::string shared_key;
  if (has_scalar) {
    shared_key = KeyOf(call, /*any_scalar=*/true);
    if (std::shared_ptr<CallPlan> plan = cache->Find(shared_key)) return plan;
  }
  std::string key = KeyOf(call, /*any_scalar=*/false);
  if (std::shared_ptr<CallPlan> plan = cache->Find(key)) return plan;
  auto plan = std::make_shared<CallPlan>(call);
  const bool is_shared = has_scalar && plan->takes_scalar();
  return cache->Add(std::move(is_shared ? shared_key : key), std::move(plan));
}

int64_t PlansMade(Runtime& runtime) {
  return PlanCache::Of(runtime)->made();
}

}  // namespace mxtrain::imperative
