// SPDX-License-Identifier: Apache-2.0
// The arrays that an operator's gradient declares to read are kept by the forward pass.
#include <doctest/doctest.h>

#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/memory_plan.h"
#include "tests/support/small_nets.h"

namespace mxtrain::test {
namespace {

using executor::BindRequest;
using executor::MemoryPlan;
using executor::Strategy;

// An operator whose gradient claims to read every array.
class Greedy : public OperatorProperty {
 public:
  explicit Greedy(std::shared_ptr<const OperatorProperty> op) : op_(std::move(op)) {}
  const OperatorProperty& op() const { return *op_; }
  static std::string NameOf(const std::string& op) { return "greedy " + op; }

  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return OperatorProperty::DeclareBackwardDependency(out_grad, in_data, out_data);
  }

  std::string TypeString() const override { return NameOf(op_->TypeString()); }
  void Init(const Kwargs&) override {
    Throw(ErrorKind::kBug, "made from an operator that is initialised");
  }
  Kwargs GetParams() const override { return op_->GetParams(); }
  std::vector<FieldInfo> DescribeParams() const override { return op_->DescribeParams(); }
  std::vector<std::string> ListArguments() const override { return op_->ListArguments(); }
  std::vector<std::string> ListOutputs() const override { return op_->ListOutputs(); }
  std::vector<std::string> ListAuxiliaryStates() const override {
    return op_->ListAuxiliaryStates();
  }
  int NumOutputs() const override { return op_->NumOutputs(); }
  int NumVisibleOutputs() const override { return op_->NumVisibleOutputs(); }
  bool HasGradient(int argument) const override { return op_->HasGradient(argument); }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override {
    return op_->InferShape(in, out, aux);
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override {
    return op_->InferType(in, out, aux);
  }
  std::vector<InplacePair> ForwardInplaceOption() const override {
    return op_->ForwardInplaceOption();
  }
  std::vector<InplacePair> BackwardInplaceOption() const override {
    return op_->BackwardInplaceOption();
  }
  std::vector<InplacePair> ForwardIdentityOption() const override {
    return op_->ForwardIdentityOption();
  }
  std::vector<InplacePair> BackwardIdentityOption() const override {
    return op_->BackwardIdentityOption();
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const override {
    return op_->ForwardResource(in_shape);
  }
  std::vector<ResourceRequest> BackwardResource(
      const std::vector<TShape>& in_shape) const override {
    return op_->BackwardResource(in_shape);
  }

 private:
  const std::shared_ptr<const OperatorProperty> op_;
};

// The operators of this build, each with a greedy variant with the same kernels.
std::shared_ptr<OperatorRegistry> WithGreedyOperators() {
  auto registry = BuiltinOperators();
  for (const std::string& name : registry->Names()) {
    for (const KernelEntry* entry : registry->Kernels(name, DeviceType::kCPU)) {
      const PlanFn plan_of = entry->plan;
      registry->AddKernel({Greedy::NameOf(name), DeviceType::kCPU, entry->name, entry->rank,
                           [plan_of](const OperatorProperty& property, const PlanRequest& request,
                                     Backend& backend) {
                             auto plan = plan_of(static_cast<const Greedy&>(property).op(), request,
                                                 backend);
                             if (plan) plan->backward_reads.reset();
                             return plan;
                           }});
    }
  }
  return registry;
}

TEST_CASE("an operator that declares every array for its gradient raises the plan") {
  RuntimeOptions options;
  options.threads = 1;
  Runtime runtime(options, WithGreedyOperators());
  std::set<std::string> raised;
  for (const SmallNet& net : SmallNets(runtime.operators())) {
    CAPTURE(net.name);
    BindRequest request = RequestFor(net, net.losses);
    request.fuse = false;  // a pattern that no longer fits would change the graph
    const auto plan_of = [&](const Graph& graph) {
      return PlanMemory(RunPasses(graph, request, runtime), request, Strategy::kFull);
    };
    const Graph& graph = net.losses.graph();
    const MemoryPlan lean = plan_of(graph);
    std::set<std::string> operators;
    for (const Node& node : graph.nodes) {
      if (node.op && node.op->NeedsHeadGradient()) operators.insert(node.op->TypeString());
    }
    for (const std::string& name : operators) {
      CAPTURE(name);
      Graph greedy = graph;
      for (Node& node : greedy.nodes) {
        if (node.op && node.op->TypeString() == name) node.op = std::make_shared<Greedy>(node.op);
      }
      const MemoryPlan plan = plan_of(greedy);
      CHECK(plan.lower_bound >= lean.lower_bound);
      if (plan.lower_bound > lean.lower_bound && plan.arena_bytes > lean.arena_bytes)
        raised.insert(name);
    }
  }
  for (const char* name :
       {"Activation", "FullyConnected", "Convolution", "BatchNorm", "elemwise_add"}) {
    CAPTURE(name);
    CHECK(raised.contains(name));
  }
}

}  // namespace
}  // namespace mxtrain::test
