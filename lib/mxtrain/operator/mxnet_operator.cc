// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/mxnet_operator.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "mxtrain/operator/plans.h"

namespace mxtrain::mxnet {

struct OpPropertyEntry::State {
  std::string name, description;
  std::vector<FieldInfo> fields;
  std::set<DeviceType> devices;  // with a kernel
};

namespace {

// Numbers of arrays and requests of an operator.
struct Counts {
  size_t in, out, visible_out, aux, forward_requests, backward_requests;
};

// The arguments of a call. Their memory is kept from call to call: a call allocates nothing.
struct Arguments {
  Arguments(const Counts& counts, size_t requests) {
    ctx.requested.reserve(requests);
    out_grad.reserve(counts.visible_out);
    for (auto* list : {&in_data, &in_grad}) list->reserve(counts.in);
    out_data.reserve(counts.out);
    aux_states.reserve(counts.aux);
    req.reserve(std::max(counts.in, counts.out));
  }

  void Take(const mxtrain::OpContext& from) {
    ctx.is_train = from.is_train;
    ctx.run_ctx = from.run_ctx;
    ctx.requested.clear();
    for (const mxtrain::Resource& granted : from.requested)
      ctx.requested.emplace_back(granted, from.run_ctx.ctx);
  }

  OpContext ctx;
  std::vector<TBlob> out_grad, in_data, out_data, in_grad, aux_states;
  std::vector<OpReqType> req;
};

template <typename From, typename To>
void Copy(std::span<const From> from, std::vector<To>* to) {
  to->assign(from.begin(), from.end());
}

// Calls an operator with lists that are vectors.
class AdaptedOperator final : public mxtrain::Operator {
 public:
  AdaptedOperator(std::unique_ptr<mxnet::Operator> op, const Counts& counts)
      : op_(std::move(op)),
        visible_out_(counts.visible_out),
        forward_(counts, counts.forward_requests),
        backward_(counts, counts.backward_requests) {}

  void Forward(const ForwardArgs& args) override {
    forward_.Take(args.ctx);
    Copy(args.in_data, &forward_.in_data);
    Copy(args.req, &forward_.req);
    Copy(args.out_data, &forward_.out_data);
    Copy(args.aux_states, &forward_.aux_states);
    op_->Forward(forward_.ctx, forward_.in_data, forward_.req, forward_.out_data,
                 forward_.aux_states);
  }

  void Backward(const BackwardArgs& args) override {
    backward_.Take(args.ctx);
    Copy(args.out_grad.first(std::min(visible_out_, args.out_grad.size())), &backward_.out_grad);
    Copy(args.in_data, &backward_.in_data);
    Copy(args.out_data, &backward_.out_data);
    Copy(args.req, &backward_.req);
    Copy(args.in_grad, &backward_.in_grad);
    Copy(args.aux_states, &backward_.aux_states);
    op_->Backward(backward_.ctx, backward_.out_grad, backward_.in_data, backward_.out_data,
                  backward_.req, backward_.in_grad, backward_.aux_states);
  }

 private:
  std::unique_ptr<mxnet::Operator> op_;
  size_t visible_out_;
  Arguments forward_, backward_;
};

std::vector<int> Ids(int first, int count) {
  std::vector<int> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

class AdaptedProperty final : public mxtrain::OperatorProperty {
 public:
  using State = OpPropertyEntry::State;
  AdaptedProperty(std::shared_ptr<State> state, std::shared_ptr<mxnet::OperatorProperty> property)
      : state_(std::move(state)), property_(std::move(property)) {}

  std::shared_ptr<const mxnet::OperatorProperty> property() const { return property_; }
  const std::shared_ptr<State>& state() const { return state_; }

  std::string TypeString() const override { return state_->name; }
  std::string Description() const override { return state_->description; }
  std::vector<FieldInfo> DescribeParams() const override { return state_->fields; }
  void Init(const Kwargs& kwargs) override { property_->Init(kwargs); }
  Kwargs GetParams() const override {
    std::map<std::string, std::string> params = property_->GetParams();
    Kwargs ordered;
    for (const FieldInfo& field : state_->fields) {
      if (const auto node = params.extract(field.name))
        ordered.emplace_back(node.key(), node.mapped());
    }
    ordered.insert(ordered.end(), params.begin(), params.end());
    return ordered;
  }

  std::vector<std::string> ListArguments() const override { return property_->ListArguments(); }
  std::vector<std::string> ListOutputs() const override { return property_->ListOutputs(); }
  std::vector<std::string> ListAuxiliaryStates() const override {
    return property_->ListAuxiliaryStates();
  }
  int NumOutputs() const override { return property_->NumOutputs(); }
  int NumVisibleOutputs() const override { return property_->NumVisibleOutputs(); }

  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    const std::vector<TShape> in_before = *in, out_before = *out, aux_before = *aux;
    const bool known = property_->InferShape(in, out, aux);
    CheckCount("arguments", in_before, known, in);
    CheckCount("outputs", out_before, known, out);
    CheckCount("auxiliary states", aux_before, known, aux);
    return known;
  }

  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return property_->DeclareBackwardDependency(out_grad, in_data, out_data);
  }

  std::vector<InplacePair> ForwardInplaceOption() const override {
    const int in = NumArguments();
    std::vector<char> places;
    const std::vector<void*> out = Pointers(NumOutputs(), &places);
    return PairsOf("ForwardInplaceOption", property_->ForwardInplaceOption(Ids(0, in), out), in,
                   out);
  }
  std::vector<InplacePair> BackwardInplaceOption() const override {
    const int in = NumArguments(), out = NumOutputs(), heads = NumVisibleOutputs();
    std::vector<char> places;
    const std::vector<void*> in_grad = Pointers(in, &places);
    return PairsOf("BackwardInplaceOption",
                   property_->BackwardInplaceOption(Ids(0, heads), Ids(heads, in),
                                                    Ids(heads + in, out), in_grad),
                   heads + in + out, in_grad, out - heads);
  }

  std::vector<mxtrain::ResourceRequest> ForwardResource(
      const std::vector<TShape>& in_shape) const override {
    const std::vector<ResourceRequest> requests = property_->ForwardResource(in_shape);
    return {requests.begin(), requests.end()};
  }
  std::vector<mxtrain::ResourceRequest> BackwardResource(
      const std::vector<TShape>& in_shape) const override {
    const std::vector<ResourceRequest> requests = property_->BackwardResource(in_shape);
    return {requests.begin(), requests.end()};
  }

 private:
  int NumArguments() const { return static_cast<int>(ListArguments().size()); }

  // A list may be empty again while its shapes are not known.
  void CheckCount(const char* what, const std::vector<TShape>& before, bool known,
                  std::vector<TShape>* after) const {
    if (after->size() == before.size()) return;
    if (known) {
      Throw(ErrorKind::kConfig, "{}: InferShape left {} shapes of {}; expected {}", TypeString(),
            after->size(), what, before.size());
    }
    *after = before;
  }

  // Distinct pointers for arrays that do not exist yet.
  static std::vector<void*> Pointers(int count, std::vector<char>* places) {
    places->resize(static_cast<size_t>(count));
    std::vector<void*> pointers;
    for (char& place : *places) pointers.push_back(&place);
    return pointers;
  }

  // The ids are below `ids`. Those from the visible outputs on are `shift` higher here, where
  // hidden outputs have head gradients too.
  std::vector<InplacePair> PairsOf(const char* function,
                                   const std::vector<std::pair<int, void*>>& options, int ids,
                                   const std::vector<void*>& to, int shift = 0) const {
    std::vector<InplacePair> pairs;
    for (const auto& [id, pointer] : options) {
      const auto found = std::find(to.begin(), to.end(), pointer);
      if (id < 0 || id >= ids || found == to.end()) {
        Throw(ErrorKind::kConfig,
              "{}: {} returned a pair that is not of its arguments; pair an id with an element of "
              "its last list",
              TypeString(), function);
      }
      const int from = id < NumVisibleOutputs() ? id : id + shift;
      pairs.push_back({from, static_cast<int>(found - to.begin())});
    }
    return pairs;
  }

  std::shared_ptr<State> state_;
  std::shared_ptr<mxnet::OperatorProperty> property_;  // shared with plans
};

using MakeProperty = std::function<std::unique_ptr<OperatorProperty>()>;

// With the same parameters.
std::shared_ptr<const OperatorProperty> Remade(const OperatorProperty& property,
                                               const MakeProperty& make) {
  const std::map<std::string, std::string> params = property.GetParams();
  std::shared_ptr<OperatorProperty> made = make();
  made->Init({params.begin(), params.end()});
  return made;
}

// `make`: of the property that creates operators for the kernel's device; empty: the operator's
// own.
Expected<Plan, Refusal> MakePlan(const mxtrain::OperatorProperty& base, const PlanRequest& request,
                                 const MakeProperty& make) {
  const auto& adapted = static_cast<const AdaptedProperty&>(base);
  std::vector<TShape> in;
  for (const TensorSpec& spec : request.in) in.push_back(spec.shape);
  const Counts counts{request.in.size(),
                      request.out.size(),
                      static_cast<size_t>(base.NumVisibleOutputs()),
                      request.aux.size(),
                      base.ForwardResource(in).size(),
                      base.BackwardResource(in).size()};
  Plan plan = PlainPlan(base, request);
  const std::shared_ptr<const OperatorProperty> property =
      make ? Remade(*adapted.property(), make) : adapted.property();
  plan.make = [property, name = base.TypeString(), ctx = request.ctx, counts] {
    std::unique_ptr<Operator> op(property->CreateOperator(ctx));
    if (!op) {
      Throw(ErrorKind::kConfig, "{}: CreateOperator returned no operator for {}", name,
            ctx.ToString());
    }
    return std::make_unique<AdaptedOperator>(std::move(op), counts);
  };
  return plan;
}

}  // namespace

void Operator::Backward(const OpContext&, const std::vector<TBlob>&, const std::vector<TBlob>&,
                        const std::vector<TBlob>&, const std::vector<OpReqType>&,
                        const std::vector<TBlob>&, const std::vector<TBlob>&) {
  Throw(ErrorKind::kConfig, "this operator has no Backward, but a gradient needs it");
}

std::vector<int> OperatorProperty::DeclareBackwardDependency(
    const std::vector<int>& out_grad, const std::vector<int>& in_data,
    const std::vector<int>& out_data) const {
  std::vector<int> all = out_grad;
  all.insert(all.end(), in_data.begin(), in_data.end());
  all.insert(all.end(), out_data.begin(), out_data.end());
  return all;
}

std::vector<std::pair<int, void*>> OperatorProperty::ForwardInplaceOption(
    const std::vector<int>&, const std::vector<void*>&) const {
  return {};
}

std::vector<std::pair<int, void*>> OperatorProperty::BackwardInplaceOption(
    const std::vector<int>&, const std::vector<int>&, const std::vector<int>&,
    const std::vector<void*>&) const {
  return {};
}

std::vector<ResourceRequest> OperatorProperty::ForwardResource(const std::vector<TShape>&) const {
  return {};
}

std::vector<ResourceRequest> OperatorProperty::BackwardResource(const std::vector<TShape>&) const {
  return {};
}

OpPropertyEntry& OpPropertyEntry::describe(const std::string& text) {
  state_->description = text;
  return *this;
}

OpPropertyEntry& OpPropertyEntry::add_arguments(std::vector<FieldInfo> fields) {
  state_->fields = std::move(fields);
  return *this;
}

OpPropertyEntry RegisterOpProperty(OperatorRegistry& registry, const std::string& name,
                                   MakeProperty make, DeviceType device) {
  // Kernels are found by the TypeString.
  if (const std::string own = make()->TypeString(); own != name) {
    Throw(ErrorKind::kConfig, "operator {}: its TypeString is '{}'; it must be the registered name",
          name, own);
  }
  const auto add_kernel = [&](const MakeProperty& for_device) {
    const char* const kernel = device == DeviceType::kCPU ? OnCpu::kKernelName : "mxnet";
    registry.AddKernel({name, device, kernel, kRefRank,
                        OfFloats([for_device](const mxtrain::OperatorProperty& property,
                                              const PlanRequest& request, Backend&) {
                          return MakePlan(property, request, for_device);
                        })});
  };
  if (registry.Has(name)) {
    const std::unique_ptr<mxtrain::OperatorProperty> first = registry.CreateUninitialized(name);
    const auto* adapted = dynamic_cast<const AdaptedProperty*>(first.get());
    if (adapted && adapted->state()->devices.insert(device).second) {
      add_kernel(make);
      return OpPropertyEntry(adapted->state());
    }
  }
  const auto state = std::make_shared<OpPropertyEntry::State>();
  state->name = name;
  state->devices = {device};
  registry.AddProperty(name, {}, [state, make = std::move(make)] {
    return std::make_unique<AdaptedProperty>(state, make());
  });
  add_kernel({});
  return OpPropertyEntry(state);
}

}  // namespace mxtrain::mxnet
