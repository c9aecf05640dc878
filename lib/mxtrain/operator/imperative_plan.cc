// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/internal/imperative_plan.h"

#include <algorithm>
#include <iterator>

namespace mxtrain::imperative {
namespace {

// Bounds the cache for calls whose shapes keep changing.
constexpr size_t kMaxPlans = 4096;

struct Cache {
  Mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<CallPlan>> plans MXTRAIN_GUARDED_BY(mutex);
};

void AppendSpecs(std::string* key, std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    fmt::format_to(std::back_inserter(*key), "|{}{}{}", static_cast<int>(array.dtype()),
                   array.shape().ToString(), static_cast<const void*>(array.layout().desc()));
  }
  *key += ';';
}

std::string KeyOf(const Call& call) {
  std::string key = format("{}@{}:{}:{}", call.op, static_cast<int>(call.ctx.type), call.ctx.id,
                           static_cast<int>(call.req));
  // Prefixes lengths, so that different lists of strings have different keys.
  for (const auto& [name, value] : call.kwargs) {
    fmt::format_to(std::back_inserter(key), "|{}:{}={}:{}", name.size(), name, value.size(), value);
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
  Kwargs kwargs = call.kwargs;
  const std::string key = registry.CreateUninitialized(call.op)->NumArgsKey();
  const bool given = std::any_of(kwargs.begin(), kwargs.end(),
                                 [&](const auto& pair) { return pair.first == key; });
  if (!key.empty() && !given) kwargs.emplace_back(key, std::to_string(call.in.size()));
  return kwargs;
}

}  // namespace

CallPlan::CallPlan(const Call& call) {
  const OperatorRegistry& registry = call.runtime.operators();
  const std::shared_ptr<const OperatorProperty> property =
      registry.Create(call.op, WithCount(call, registry));
  const std::string name = property->TypeString();
  CheckCount(name.c_str(), "argument", call.in.size(), property->ListArguments());
  CheckCount(name.c_str(), "auxiliary state", call.aux.size(), property->ListAuxiliaryStates());
  num_visible_ = property->NumVisibleOutputs();
  Infer(call, *property);
  Choose(call, *property);
  name_ = registry.Kernels(name, call.ctx.type).front()->op.c_str();
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
  request.in = in_;
  request.out = out_;
  request.aux = aux_;
  request.in_layout = in_layout;
  request.aux_layout = aux_layout;
  request.out_req = out_req;
  plan_ = property.CreatePlan(call.runtime.operators(), request, backend);
  for (size_t i = 0; i < out_.size(); ++i) out_[i].layout = plan_.out[i];
}

std::unique_ptr<Operator> CallPlan::Borrow() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Operator> op = std::move(idle_.back());
      idle_.pop_back();
      return op;
    }
  }
  return plan_.make();
}

void CallPlan::Return(std::unique_ptr<Operator> op) {
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(op));
}

std::shared_ptr<CallPlan> PlanOf(const Call& call) {
  const auto cache = std::static_pointer_cast<Cache>(
      call.runtime.Extension("imperative", [] { return std::make_shared<Cache>(); }));
  const std::string key = KeyOf(call);
  {
    const MutexLock lock(cache->mutex);
    if (const auto found = cache->plans.find(key); found != cache->plans.end())
      return found->second;
  }
  auto plan = std::make_shared<CallPlan>(call);
  const MutexLock lock(cache->mutex);
  if (cache->plans.size() >= kMaxPlans) cache->plans.clear();
  return cache->plans.emplace(key, std::move(plan)).first->second;
}

}  // namespace mxtrain::imperative
