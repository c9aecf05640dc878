// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/simple_op.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <variant>

#include "mxtrain/operator/internal/simple_op_entries.h"

namespace mxtrain {

using simple_op::Calls;

// The declaration of an operator. Written while the registry is filled, read-only afterwards.
struct SimpleOp::Entry {
  using Function = Calls::Function;
  using Gradient = Calls::Gradient;
  struct Device {
    Function function;
    Gradient gradient;
  };
  struct ResourceWish {
    ResourceRequest::Type type;
    ResourceBytes bytes;
  };

  std::string name, description;
  OperatorRegistry* registry = nullptr;  // owns this entry
  int arity = 0;                         // 1 or 2; 0 until a function is set
  Calls::Shape shape;
  std::map<DeviceType, Device> devices;
  size_t gradient_kind = 0;  // index into Gradient, the same on every device
  SimpleOpInplaceOption forward_inplace = kNoInplace, backward_inplace = kNoInplace;
  std::vector<InplacePair> forward_identity, backward_identity;
  std::vector<std::string> arguments;
  bool scalar_enabled = false, kwargs_enabled = false;
  double default_scalar = 1;
  std::vector<FieldInfo> fields;  // of kwargs, when declared
  ParseKwargs parse;
  std::vector<ResourceWish> resources;
  Elementwise elementwise = Elementwise::kNo;
  std::function<Elementwise(const EnvArguments& env)> elementwise_of;  // instead, if set
  LayoutFunction layouts;  // instead of one common layout, if set
  MixedPrecision mixed_precision;
  std::vector<DType> types;  // empty: all

  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> text, Args&&... args) const {
    Throw(ErrorKind::kConfig, "SimpleOp {}: {}", name, format(text, std::forward<Args>(args)...));
  }
  void SetArity(int n);
  void SetShape(Calls::Shape function);
  void SetFunction(DeviceType device, Function function, SimpleOpInplaceOption inplace);
  void SetGradient(DeviceType device, Gradient gradient, SimpleOpInplaceOption inplace);

  bool gradient_reads_output() const { return gradient_kind == 2 || gradient_kind == 5; }
  bool gradient_reads_input() const { return gradient_kind == 3 || gradient_kind == 6; }
};

namespace {

const char* NameOf(SimpleOpInplaceOption option) {
  switch (option) {
    case kNoInplace:
      return "kNoInplace";
    case kInplaceInOut:
      return "kInplaceInOut";
    case kInplaceOutIn:
      return "kInplaceOutIn";
    case kInplaceLhsOut:
      return "kInplaceLhsOut";
    case kInplaceOutLhs:
      return "kInplaceOutLhs";
  }
  return "?";
}

// The parameter `scalar`, whose default each operator sets.
struct ScalarField {
  double scalar = 0;
  static std::vector<params::Field> Schema(double default_value) {
    Fields<ScalarField> fields;
    fields.Add("scalar", &ScalarField::scalar)
        .Default(default_value)
        .AnyNumber()
        .Help("scalar operand");
    return fields.Take();
  }
};

std::vector<InplacePair> PairsOf(SimpleOpInplaceOption option) {
  return option == kNoInplace ? std::vector<InplacePair>{} : std::vector<InplacePair>{{0, 0}};
}

class SimpleOpProperty final : public OperatorProperty {
 public:
  using Entry = SimpleOp::Entry;
  explicit SimpleOpProperty(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}

  const std::shared_ptr<Entry>& entry() const { return entry_; }
  const EnvArguments& env() const { return env_; }

  std::string TypeString() const override { return entry_->name; }
  std::string Description() const override { return entry_->description; }
  void Init(const Kwargs& kwargs) override;
  Kwargs GetParams() const override;
  std::vector<FieldInfo> DescribeParams() const override;
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  // Zero need not map to zero with a scalar that is infinite or NaN as float32, or whose square is.
  Elementwise elementwise() const override {
    if (entry_->elementwise_of)
      return entry_->parse && !env_.parsed ? Elementwise::kYes : entry_->elementwise_of(env_);
    const bool loses_zeros = entry_->elementwise == Elementwise::kZeroToZero &&
                             !params::FitsFloat32(env_.scalar * env_.scalar);
    return loses_zeros ? Elementwise::kYes : entry_->elementwise;
  }
  MixedPrecision mixed_precision() const override { return entry_->mixed_precision; }
  std::vector<InplacePair> ForwardInplaceOption() const override {
    return PairsOf(entry_->forward_inplace);
  }
  std::vector<InplacePair> BackwardInplaceOption() const override {
    return PairsOf(entry_->backward_inplace);
  }
  std::vector<InplacePair> ForwardIdentityOption() const override {
    return entry_->forward_identity;
  }
  std::vector<InplacePair> BackwardIdentityOption() const override {
    return entry_->backward_identity;
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const override;
  std::vector<ResourceRequest> BackwardResource(
      const std::vector<TShape>& in_shape) const override {
    return ForwardResource(in_shape);
  }

 private:
  // Without a shape function: all arrays have one shape.
  void UnifyAll(std::vector<TShape>* in, std::vector<TShape>* out) const;
  TShape CallShapeFunction(const std::vector<TShape>& in) const;

  std::shared_ptr<Entry> entry_;
  EnvArguments env_;
};

void SimpleOpProperty::Init(const Kwargs& kwargs) {
  if (entry_->scalar_enabled) {
    ScalarField param;
    params::Init(ScalarField::Schema(entry_->default_scalar), &param, kwargs, entry_->name);
    env_.scalar = param.scalar;
  } else if (entry_->kwargs_enabled && entry_->parse) {
    SimpleOp::ParsedKwargs parsed = entry_->parse(kwargs, entry_->name);
    env_.kwargs = std::move(parsed.kwargs);
    env_.parsed = std::move(parsed.parsed);
  } else if (entry_->kwargs_enabled) {
    std::copy_if(kwargs.begin(), kwargs.end(), std::back_inserter(env_.kwargs),
                 [](const auto& pair) { return !pair.first.starts_with("__"); });
  } else {
    NoParam().Init(kwargs, entry_->name);
  }
}

Kwargs SimpleOpProperty::GetParams() const {
  if (!entry_->scalar_enabled) return env_.kwargs;
  return {{"scalar", params::Print(env_.scalar)}};
}

std::vector<FieldInfo> SimpleOpProperty::DescribeParams() const {
  if (!entry_->scalar_enabled) return entry_->fields;
  return {ScalarField::Schema(entry_->default_scalar)[0].info};
}

std::vector<std::string> SimpleOpProperty::ListArguments() const {
  if (!entry_->arguments.empty()) return entry_->arguments;
  return entry_->arity == 2 ? std::vector<std::string>{"lhs", "rhs"}
                            : std::vector<std::string>{"data"};
}

void SimpleOpProperty::UnifyAll(std::vector<TShape>* in, std::vector<TShape>* out) const {
  const std::vector<std::string> names = ListArguments();
  TShape common = (*out)[0];
  for (size_t i = 0; i < in->size(); ++i) UnifyShape((*in)[i], &common, entry_->name, names[i]);
  std::fill(in->begin(), in->end(), common);
  (*out)[0] = common;
}

TShape SimpleOpProperty::CallShapeFunction(const std::vector<TShape>& in) const {
  if (const auto* unary = std::get_if<Calls::Of<UnaryShapeFunction>>(&entry_->shape))
    return (*unary)(in[0], env_);
  return std::get<Calls::Of<BinaryShapeFunction>>(entry_->shape)(in[0], in[1], env_);
}

bool SimpleOpProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                  std::vector<TShape>*) const {
  if (entry_->shape.index() == 0) {
    UnifyAll(in, out);
    return (*out)[0].known();
  }
  if (!std::all_of(in->begin(), in->end(), [](const TShape& shape) { return shape.known(); }))
    return false;
  UnifyShape(CallShapeFunction(*in), &(*out)[0], entry_->name, "output");
  return (*out)[0].known();
}

std::vector<int> SimpleOpProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> read = out_grad;
  if (entry_->gradient_reads_output()) read.insert(read.end(), out_data.begin(), out_data.end());
  if (entry_->gradient_reads_input()) read.insert(read.end(), in_data.begin(), in_data.end());
  return read;
}

std::vector<ResourceRequest> SimpleOpProperty::ForwardResource(
    const std::vector<TShape>& in_shape) const {
  std::vector<ResourceRequest> requests;
  for (const Entry::ResourceWish& wish : entry_->resources) {
    const int64_t unsized =
        wish.type == ResourceRequest::kTempSpace ? ResourceRequest::kUnknownSize : 0;
    requests.push_back({wish.type, wish.bytes ? wish.bytes(in_shape, env_) : unsized});
  }
  return requests;
}

class SimpleOperator final : public Operator {
 public:
  SimpleOperator(SimpleOp::Entry::Device functions, EnvArguments env, size_t num_resources)
      : functions_(functions), env_(std::move(env)) {
    env_.resource.resize(num_resources);
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    TBlob out = args.out_data[0];
    TakeResources(args.ctx);
    if (args.ctx.scalar) env_.scalar = *args.ctx.scalar;
    if (auto* unary = std::get_if<Calls::Of<UnaryFunction>>(&functions_.function)) {
      (*unary)(args.in_data[0], env_, &out, args.req[0], args.ctx.run_ctx);
    } else {
      std::get<Calls::Of<BinaryFunction>>(functions_.function)(
          args.in_data[0], args.in_data[1], env_, &out, args.req[0], args.ctx.run_ctx);
    }
  }

  void Backward(const BackwardArgs& args) override {
    if (std::all_of(args.req.begin(), args.req.end(),
                    [](OpReqType r) { return r == OpReqType::kNullOp; }))
      return;
    TakeResources(args.ctx);
    const Call call{
        args.ctx, {{args.out_grad[0]}}, {{args.out_data[0]}}, args.in_data, args.req, args.in_grad,
        env_};
    std::visit(call, functions_.gradient);
  }

 private:
  // Calls a gradient function of any kind.
  struct Call {
    const OpContext& ctx;
    OutputGrad head;
    OutputValue output;
    std::span<const TBlob> in;
    std::span<const OpReqType> req;
    std::span<const TBlob> grad;
    const EnvArguments& env;

    void operator()(std::monostate) const {
      Throw(ErrorKind::kBug, "the gradient of a SimpleOp without a gradient was requested");
    }
    void operator()(const Calls::Of<UnaryGradFunctionT0>& f) const {
      TBlob g = grad[0];
      f(head, env, &g, req[0], ctx.run_ctx);
    }
    void operator()(const Calls::Of<UnaryGradFunctionT1>& f) const {
      TBlob g = grad[0];
      f(head, output, env, &g, req[0], ctx.run_ctx);
    }
    void operator()(const Calls::Of<UnaryGradFunctionT2>& f) const {
      TBlob g = grad[0];
      f(head, Input0{{in[0]}}, env, &g, req[0], ctx.run_ctx);
    }
    void operator()(const Calls::Of<BinaryGradFunctionT0>& f) const {
      TBlob l = grad[0], r = grad[1];
      f(head, env, &l, &r, req[0], req[1], ctx.run_ctx);
    }
    void operator()(const Calls::Of<BinaryGradFunctionT1>& f) const {
      TBlob l = grad[0], r = grad[1];
      f(head, output, env, &l, &r, req[0], req[1], ctx.run_ctx);
    }
    void operator()(const Calls::Of<BinaryGradFunctionT2>& f) const {
      TBlob l = grad[0], r = grad[1];
      f(head, Input0{{in[0]}}, Input1{{in[1]}}, env, &l, &r, req[0], req[1], ctx.run_ctx);
    }
  };

  // The vector already has its size: nothing is allocated.
  void TakeResources(const OpContext& ctx) {
    env_.resource.assign(ctx.requested.begin(), ctx.requested.end());
  }

  SimpleOp::Entry::Device functions_;
  EnvArguments env_;
};

// The layout of all arrays: the first opaque one offered, if the functions may run over it as a
// flat array.
Layout CommonLayout(Elementwise elementwise, const PlanRequest& request) {
  if (elementwise == Elementwise::kNo) return {};
  const TShape& shape = request.out[0].shape;
  for (const TensorSpec& spec : request.in) {
    if (spec.shape != shape) return {};
  }
  for (const std::optional<Layout>& offered : request.in_layout) {
    if (!offered || offered->plain()) continue;
    if (elementwise == Elementwise::kZeroToZero || !offered->Padded(shape)) return *offered;
  }
  return {};
}

// Pairs whose two arrays have equal sizes in bytes.
std::vector<InplacePair> Grant(SimpleOpInplaceOption option, const PlanRequest& request) {
  if (request.in[0].shape.Size() != request.out[0].shape.Size() ||
      request.in[0].type != request.out[0].type)
    return {};
  return PairsOf(option);
}

// Besides shapes and sizes, a scalar can decide only the layout (OperatorProperty::elementwise).
bool TakesScalar(const SimpleOp::Entry& entry, const PlanRequest& request) {
  return entry.scalar_enabled && entry.shape.index() == 0 &&
         std::none_of(entry.resources.begin(), entry.resources.end(),
                      [](const auto& wish) { return static_cast<bool>(wish.bytes); }) &&
         std::all_of(request.in_layout.begin(), request.in_layout.end(),
                     [](const auto& offered) { return !offered || offered->plain(); });
}

double Cost(const PlanRequest& request) {
  constexpr double kRate = 10;  // bytes of memory per nanosecond
  double bytes = static_cast<double>(request.out[0].shape.Size() * SizeOf(request.out[0].type));
  for (const TensorSpec& spec : request.in)
    bytes += static_cast<double>(spec.shape.Size() * SizeOf(spec.type));
  return bytes / kRate;
}

Expected<Plan, Refusal> PlanSimple(const OperatorProperty& base, const PlanRequest& request,
                                   DeviceType device) {
  const auto& property = static_cast<const SimpleOpProperty&>(base);
  const SimpleOp::Entry& entry = *property.entry();
  const SimpleOp::Entry::Device& functions = entry.devices.at(device);
  const bool wants_gradient = std::any_of(request.grad_req.begin(), request.grad_req.end(),
                                          [](OpReqType req) { return req != OpReqType::kNullOp; });
  if (request.needs_backward && wants_gradient && functions.gradient.index() == 0)
    return Refusal{"it has no gradient"};

  for (const TensorSpec& spec : request.in) {
    if (!entry.types.empty() &&
        std::find(entry.types.begin(), entry.types.end(), spec.type) == entry.types.end()) {
      return Refusal{format("no function for {}", NameOf(spec.type))};
    }
  }

  Plan plan;
  if (entry.layouts) {
    plan.in = entry.layouts(request);
  } else {
    plan.in.assign(request.in.size() + 1, CommonLayout(property.elementwise(), request));
  }
  plan.out.assign(1, plan.in.back());
  plan.in.pop_back();
  plan.forward_inplace = Grant(entry.forward_inplace, request);
  plan.backward_inplace = Grant(entry.backward_inplace, request);
  plan.takes_scalar = TakesScalar(entry, request);
  plan.cost = Cost(request);
  plan.make = [functions, env = property.env(),
               n = entry.resources.size()]() -> std::unique_ptr<Operator> {
    return std::make_unique<SimpleOperator>(functions, env, n);
  };
  return plan;
}

}  // namespace

void SimpleOp::Entry::SetArity(int n) {
  if (arity != 0 && arity != n) Fail("unary and binary functions are mixed");
  arity = n;
}

void SimpleOp::Entry::SetShape(Calls::Shape function) {
  SetArity(static_cast<int>(function.index()));
  shape = std::move(function);
}

void SimpleOp::Entry::SetFunction(DeviceType device, Function function,
                                  SimpleOpInplaceOption inplace) {
  const int n = static_cast<int>(function.index());
  SetArity(n);
  if (inplace != kNoInplace && inplace != (n == 1 ? kInplaceInOut : kInplaceLhsOut)) {
    Fail("{} is not an option of a {} function", NameOf(inplace), n == 1 ? "unary" : "binary");
  }
  if (!devices.empty() && inplace != forward_inplace) {
    Fail("{} on one device and {} on another; in-place options must be the same on all devices",
         NameOf(forward_inplace), NameOf(inplace));
  }
  if (devices.contains(device))
    Fail("the function for {} is already set", Context{device, 0}.ToString());
  forward_inplace = inplace;
  devices[device].function = std::move(function);
  registry->AddKernel({name, device, "simple", kRefRank,
                       [device](const OperatorProperty& property, const PlanRequest& request,
                                Backend&) { return PlanSimple(property, request, device); }});
}

void SimpleOp::Entry::SetGradient(DeviceType device, Gradient gradient,
                                  SimpleOpInplaceOption inplace) {
  const int n = gradient.index() <= 3 ? 1 : 2;
  SetArity(n);
  if (inplace != kNoInplace && inplace != (n == 1 ? kInplaceOutIn : kInplaceOutLhs)) {
    Fail("{} is not an option of a {} gradient", NameOf(inplace), n == 1 ? "unary" : "binary");
  }
  const auto found = devices.find(device);
  if (found == devices.end())
    Fail("gradient for {} without a function; call set_function first",
         Context{device, 0}.ToString());
  if (found->second.gradient.index() != 0)
    Fail("the gradient for {} is already set", Context{device, 0}.ToString());
  if (gradient_kind != 0 && (gradient.index() != gradient_kind || inplace != backward_inplace)) {
    Fail(
        "the gradients on two devices differ in the arrays they read or in their in-place option; "
        "both must be the same");
  }
  gradient_kind = gradient.index();
  backward_inplace = inplace;
  found->second.gradient = std::move(gradient);
}

namespace {

std::shared_ptr<SimpleOp::Entry> EntryOf(const OperatorRegistry& registry,
                                         const std::string& name) {
  const std::unique_ptr<OperatorProperty> made = registry.CreateUninitialized(name);
  const auto* simple = dynamic_cast<const SimpleOpProperty*>(made.get());
  if (!simple)
    Throw(ErrorKind::kConfig,
          "SimpleOp {}: the name is taken by an operator that is not a SimpleOp", name);
  return simple->entry();
}

}  // namespace

void Calls::SetShape(OperatorRegistry& registry, const std::string& name, Shape shape) {
  EntryOf(registry, name)->SetShape(std::move(shape));
}
void Calls::SetFunction(OperatorRegistry& registry, const std::string& name, DeviceType device,
                        Function function, SimpleOpInplaceOption inplace) {
  EntryOf(registry, name)->SetFunction(device, std::move(function), inplace);
}
void Calls::SetGradient(OperatorRegistry& registry, const std::string& name, DeviceType device,
                        Gradient gradient, SimpleOpInplaceOption inplace) {
  EntryOf(registry, name)->SetGradient(device, std::move(gradient), inplace);
}

SimpleOp::SimpleOp(OperatorRegistry& registry, const std::string& name) {
  if (registry.Has(name)) {
    entry_ = EntryOf(registry, name);
    return;
  }
  entry_ = std::make_shared<Entry>();
  entry_->name = name;
  entry_->registry = &registry;
  registry.AddProperty(name, {},
                       [entry = entry_] { return std::make_unique<SimpleOpProperty>(entry); });
}

std::function<void()> KeepSimpleOps(const OperatorRegistry& registry) {
  std::vector<std::pair<std::shared_ptr<SimpleOp::Entry>, SimpleOp::Entry>> kept;
  for (const std::string& name : registry.Names()) {
    const std::unique_ptr<OperatorProperty> made = registry.CreateUninitialized(name);
    if (const auto* simple = dynamic_cast<const SimpleOpProperty*>(made.get()))
      kept.emplace_back(simple->entry(), *simple->entry());
  }
  return [kept = std::move(kept)] {
    for (const auto& [entry, before] : kept) *entry = before;
  };
}

SimpleOp& SimpleOp::set_shape_function(UnaryShapeFunction function) {
  entry_->SetShape(Calls::Of<UnaryShapeFunction>(function));
  return *this;
}
SimpleOp& SimpleOp::set_shape_function(BinaryShapeFunction function) {
  entry_->SetShape(Calls::Of<BinaryShapeFunction>(function));
  return *this;
}
SimpleOp& SimpleOp::set_function(DeviceType device, UnaryFunction function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetFunction(device, Calls::Of<UnaryFunction>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_function(DeviceType device, BinaryFunction function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetFunction(device, Calls::Of<BinaryFunction>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT0 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<UnaryGradFunctionT0>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT1 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<UnaryGradFunctionT1>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT2 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<UnaryGradFunctionT2>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT0 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<BinaryGradFunctionT0>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT1 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<BinaryGradFunctionT1>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT2 function,
                                 SimpleOpInplaceOption inplace) {
  entry_->SetGradient(device, Calls::Of<BinaryGradFunctionT2>(function), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_enable_scalar(bool enable, double default_value) {
  if (enable && entry_->kwargs_enabled)
    entry_->Fail("a scalar and keyword arguments cannot both be enabled");
  entry_->scalar_enabled = enable;
  entry_->default_scalar = default_value;
  return *this;
}
SimpleOp& SimpleOp::set_enable_kwargs(bool enable) {
  if (enable && entry_->scalar_enabled)
    entry_->Fail("a scalar and keyword arguments cannot both be enabled");
  entry_->kwargs_enabled = enable;
  return *this;
}
SimpleOp& SimpleOp::set_kwargs_schema(std::vector<FieldInfo> fields, ParseKwargs parse) {
  set_enable_kwargs(true);
  entry_->fields = std::move(fields);
  entry_->parse = std::move(parse);
  return *this;
}
SimpleOp& SimpleOp::set_resource_request(ResourceRequest::Type type, ResourceBytes bytes) {
  entry_->resources.push_back({type, std::move(bytes)});
  return *this;
}
SimpleOp& SimpleOp::set_elementwise(Elementwise elementwise) {
  entry_->elementwise = elementwise;
  return *this;
}
SimpleOp& SimpleOp::set_elementwise(
    std::function<Elementwise(const EnvArguments& env)> elementwise) {
  entry_->elementwise_of = std::move(elementwise);
  return *this;
}
SimpleOp& SimpleOp::set_layout_function(LayoutFunction function) {
  entry_->layouts = std::move(function);
  return *this;
}
SimpleOp& SimpleOp::set_mixed_precision(MixedPrecision mixed_precision) {
  entry_->mixed_precision = mixed_precision;
  return *this;
}
SimpleOp& SimpleOp::set_types(std::vector<DType> types) {
  entry_->types = std::move(types);
  return *this;
}
SimpleOp& SimpleOp::set_identity(std::vector<InplacePair> forward,
                                 std::vector<InplacePair> backward) {
  entry_->forward_identity = std::move(forward);
  entry_->backward_identity = std::move(backward);
  return *this;
}
SimpleOp& SimpleOp::set_arguments(std::vector<std::string> names) {
  entry_->SetArity(static_cast<int>(names.size()));
  entry_->arguments = std::move(names);
  return *this;
}
SimpleOp& SimpleOp::add_alias(const std::string& alias) {
  entry_->registry->AddAlias(entry_->name, alias);
  return *this;
}
SimpleOp& SimpleOp::describe(const std::string& text) {
  entry_->description = text;
  return *this;
}

const EnvArguments& SimpleOp::ArgumentsOf(const OperatorProperty& property) {
  const auto* simple = dynamic_cast<const SimpleOpProperty*>(&property);
  if (!simple) Throw(ErrorKind::kBug, "{} is not a SimpleOp", property.TypeString());
  return simple->env();
}

}  // namespace mxtrain
