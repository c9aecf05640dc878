// SPDX-License-Identifier: Apache-2.0
#pragma once
// The passes that turn a symbol's graph into what an Executor runs, in order. Each takes an
// ExecGraph and returns a new one; one file each in passes/.
//
//   Infer -> Place -> LowerComposites -> CastForAmp -> Fuse (FoldBatchNorm, patterns,
//   ShareWithBatchNorm, FuseElementwise)
//   -> ChooseLayouts -> AddGradient -> FinalizePlans -> CopyAcrossDevices -> ChooseOrder
//   -> Recompute -> Overlap -> PlanMemory -> Freeze
//
// Nodes stay in topological order, which is the order of execution on one lane.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/engine/engine.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {
class Runtime;
}

namespace mxtrain::executor {

enum class GradReq { kNull, kWrite, kAdd };

// Upper limit on the bytes of an arena, met by recomputation.
struct MemoryBudget {
  int64_t bytes = 0;   // 0: no limit
  double share = 0;    // above 0: instead of `bytes`, this fraction of the unlimited arena
  int64_t arenas = 1;  // of equal size, among which a larger budget was divided

  bool limits() const { return bytes > 0 || share > 0; }
  int64_t Of(int64_t plain) const {
    return share > 0 ? static_cast<int64_t>(share * static_cast<double>(plain)) : bytes;
  }
  // The budget of each of several arenas that share it.
  MemoryBudget Among(int64_t several) const { return {bytes / several, share, several}; }
};

struct BindRequest {
  Context ctx = Context::cpu();
  // Device of each ctx_group; of groups that are not named here, and of the rest, `ctx`.
  std::map<std::string, Context> group2ctx;
  bool is_train = true;  // passed to operators as OpContext::is_train
  bool fuse = true;
  // The last kernel of every operator, plain arrays: the reference in tests.
  bool reference_kernels = false;
  bool deterministic = false;
  // On one GPU a pass is one captured graph; false: each gradient is ready at once.
  bool capture_passes = true;
  // Above 0: several graphs, cut where gradients of that many bytes are complete, so that their
  // sums over devices begin meanwhile (gradient_buckets.h).
  int64_t bucket_bytes = 0;
  Math math = Math::kFast;
  // Narrow type of convolutions, matrix products and the operators between them.
  std::optional<DType> amp;
  int replica = 0;  // of several executors on parts of a batch: each has its own random stream
  // Which net this is of those in the Runtime whose nodes have the same names: its draws depend on
  // it, and those of the first, 0, on the names alone. Nothing: the one whose executor it shares
  // arrays with; else as many as were bound before, since the last seed.
  std::optional<int> namesake;
  // The batch is a part of a larger one: training sums of batch normalization over all parts, as
  // Executor::BeginStep says. On the CPU.
  bool divided_batch = false;
  MemoryBudget memory_budget;
  std::set<std::string> inputs;          // variables fed at each step (data, labels); always plain
  std::map<std::string, TShape> shapes;  // known shapes of variables; at least of the inputs
  std::map<std::string, DType> types;
  // Of variables whose arrays exist; the others get the best kernel's layout.
  std::map<std::string, Layout> layouts;
  std::map<std::string, GradReq> grad_req;  // by argument; kNull if absent
  std::vector<std::string> monitored;       // names of nodes whose outputs must all be computed

  bool needs_backward() const;
  // Each once: `ctx`, then those of groups.
  MXTRAIN_API std::vector<Context> devices() const;
};

// A node with what the passes determine about it.
//
// The inputs of a kBackward node have fixed positions, with an empty entry for what its plan does
// not read:
//   out_grad of each output | in_data of each argument | out_data of each output
//   | auxiliary states | saved buffers
// and its output i is the gradient of argument i. A kReorder node converts its input to another
// layout, or to another type (CastForAmp). A kCopy node ("_CrossDeviceCopy") copies its input,
// which is on another device; all other inputs are on the node's device.
struct ExecNode : Node {
  ExecNode() = default;
  explicit ExecNode(const Node& node) : Node(node) {}

  // Per output; a kForward node's saved buffers (uint8) follow its outputs.
  std::vector<TensorSpec> specs;
  std::vector<OpReqType> req;  // per output; kNullOp: not requested
  // Per output; kAddTo: the entry whose bytes it takes over; empty: none or external.
  std::vector<NodeEntry> adds_to;
  std::shared_ptr<const Plan> plan;  // of kForward, shared by its kBackward
  // kBackward: its forward node; kForward and kReorder: the node that this one recomputes.
  int forward = -1;
  // Several CPU workers: the last node that may run beside this one, among those after it. -1: this
  // one.
  int last_beside = -1;
  bool backward_pass = false;  // created by AddGradient, or later on its behalf
  bool precomputed = false;    // depends only on parameters: run when they change, not per step
  std::vector<std::string> origins;  // the user's nodes fused into this one; empty: only itself
  Context ctx;
  // Its ctx_group, or the one whose device it follows. Nodes of different groups are neither fused
  // nor accumulate into one array, so that the bits do not depend on the devices of the groups.
  std::string group;

  void PlaceBeside(const ExecNode& other) {
    ctx = other.ctx;
    group = other.group;
  }
  int num_outputs() const {
    return kind == Kind::kForward ? op->NumOutputs() : static_cast<int>(req.size());
  }
  int num_aux() const { return static_cast<int>(inputs.size()) - num_args; }  // of kForward
};

struct ExecGraph {
  std::vector<ExecNode> nodes;
  std::vector<NodeEntry> heads;             // in the order of the user's symbol
  std::vector<int> arguments, auxiliaries;  // variable nodes, in the order of the user's symbol
  // The gradient of each argument, which is the external gradient buffer; empty: not requested.
  std::vector<NodeEntry> gradients;
  // Variables that hold the gradient of each head; empty: not needed.
  std::vector<NodeEntry> head_grads;
  int loss_scale = -1;      // variable node: factor on the gradients at the heads [1]; -1: none
  int first_backward = -1;  // nodes from here on are the backward pass; -1: none

  const TensorSpec& spec(NodeEntry e) const { return nodes[e.node].specs[e.index]; }
};

MXTRAIN_API ExecGraph Infer(const Graph& graph, const BindRequest& request);
// Throws kConfig for a device of a group that the net does not have, and for what several devices
// do not support: amp, a memory budget, GPUs together with CPUs, an auxiliary state that operators
// on several devices use.
MXTRAIN_API ExecGraph Place(ExecGraph graph, const BindRequest& request);
// Replaces composite operators by their graphs, unless a kernel takes them with their arguments or
// with those that they will have in mixed precision.
MXTRAIN_API ExecGraph LowerComposites(ExecGraph graph, const BindRequest& request,
                                      Runtime& runtime);
// Why mixed precision in this type is not supported on the device; "" if it is.
MXTRAIN_API std::string WhyNoAmp(DType type, Context ctx, Runtime& runtime);
// Throws kConfig if the device does not support it, and in float16 for a trained head that is not a
// loss.
MXTRAIN_API ExecGraph CastForAmp(ExecGraph graph, const BindRequest& request, Runtime& runtime);
// Parts of Fuse; the first in evaluation only.
MXTRAIN_API ExecGraph FoldBatchNorm(ExecGraph graph, const BindRequest& request, Runtime& runtime);
// In training: kernels of convolutions do a part of the work of the batch norms beside them.
MXTRAIN_API ExecGraph ShareWithBatchNorm(ExecGraph graph, const BindRequest& request,
                                         Runtime& runtime);
MXTRAIN_API ExecGraph FuseElementwise(ExecGraph graph, const BindRequest& request,
                                      Runtime& runtime);
MXTRAIN_API ExecGraph Fuse(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph ChooseLayouts(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph AddGradient(ExecGraph graph, const BindRequest& request,
                                  const OperatorRegistry& registry);
MXTRAIN_API ExecGraph FinalizePlans(ExecGraph graph, const BindRequest& request, Runtime& runtime);
// Inserts a kCopy wherever a node reads an entry of another device, one for each entry and device,
// and for the gradient of a variable on another device.
MXTRAIN_API ExecGraph CopyAcrossDevices(ExecGraph graph, const BindRequest& request);
// Repeats forward nodes to meet the memory budget.
MXTRAIN_API ExecGraph Recompute(ExecGraph graph, const BindRequest& request);
// All of the above.
MXTRAIN_API ExecGraph RunPasses(const Graph& graph, const BindRequest& request, Runtime& runtime);

// --- shared by the passes

// Makes a Plan for a forward node: with the given `kernel` (or the reference kernel, if requested),
// which may decline, else with the best kernel that accepts. `grad_req`: per argument (empty
// without backward). Errors name the node and its location.
Expected<std::shared_ptr<const Plan>, Refusal> PlanNode(
    const ExecGraph& graph, const ExecNode& node, const BindRequest& request, Runtime& runtime,
    std::span<const std::optional<Layout>> in_layout, std::span<const OpReqType> grad_req,
    const char* kernel = nullptr);
// Gives a forward node the output types that its operator infers from its inputs.
void SetOutputTypes(const ExecGraph& graph, ExecNode* node);
// Whether a kernel accepts a forward node, choosing every layout; `better`: one that ranks before
// `ref`.
bool HasKernel(const ExecGraph& graph, const ExecNode& node, const BindRequest& request,
               Runtime& runtime, std::span<const OpReqType> grad_req, bool better);
// Kernels ranked before the chosen one, with the reasons why they declined, for `plan --kernels`.
MXTRAIN_API std::vector<std::pair<std::string, std::string>> Refusals(const ExecGraph& graph,
                                                                      const ExecNode& node,
                                                                      const BindRequest& request,
                                                                      Runtime& runtime);
// Shapes of the arguments of a forward node, without auxiliary states, for
// OperatorProperty::ForwardResource.
std::vector<TShape> ArgumentShapes(const ExecGraph& graph, const ExecNode& forward);
// Which arguments of each forward node get a gradient: those on a path from a head, or from an
// operator that needs no head gradient, to a variable whose gradient is requested.
// [node][argument]; a node with no true entry has no backward.
std::vector<std::vector<bool>> WantedGradients(const ExecGraph& graph, const BindRequest& request);
// Number of readers of each entry, heads included: [node][output].
std::vector<std::vector<int>> CountReaders(const ExecGraph& graph);
// "fc1 (net.yaml:31)".
std::string Describe(const Node& node);

}  // namespace mxtrain::executor
