#pragma once
// The passes that turn a symbol's graph into what an Executor runs, in their order. Each takes an ExecGraph and returns a new one; a file each
// in passes/.
//
//   Infer -> Place -> CastForAmp -> Fuse (FoldBatchNorm, patterns, FuseElementwise) -> ChooseLayouts -> AddGradient -> FinalizePlans -> ChooseOrder
//   -> Recompute -> PlanMemory -> Freeze
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

// The most bytes of an arena; recomputation is what it takes to meet it.
struct MemoryBudget {
  int64_t bytes = 0;  // 0: no limit
  double share = 0;   // above 0: in place of `bytes`, this part of what the arena would hold without a limit

  bool limits() const { return bytes > 0 || share > 0; }
  int64_t Of(int64_t plain) const { return share > 0 ? static_cast<int64_t>(share * static_cast<double>(plain)) : bytes; }
  // For each of several arenas that share it.
  MemoryBudget Among(int64_t arenas) const { return {bytes / arenas, share}; }
};

struct BindRequest {
  Context ctx = Context::cpu();
  std::map<std::string, Context> group2ctx;   // device of each ctx_group
  bool is_train = true;                       // what operators see as OpContext::is_train
  bool fuse = true;
  bool reference_kernels = false;             // the last kernel of every operator, all arrays plain: the oracle in tests
  bool deterministic = false;
  bool capture_passes = true;                   // on one GPU a pass is one recorded function; false: gradients are ready as they come
  Math math = Math::kFast;
  std::optional<DType> amp;                   // narrow type of convolutions, matrix products and what stands between them
  int replica = 0;                            // of several executors on parts of a batch: each draws random numbers of its own
  MemoryBudget memory_budget;
  std::set<std::string> inputs;               // variables that are fed anew for each step (data, labels); always plain
  std::map<std::string, TShape> shapes;       // known shapes of variables; those of the inputs at least
  std::map<std::string, DType> types;
  std::map<std::string, Layout> layouts;      // of variables whose arrays exist already; the others lie as the best kernel wants
  std::map<std::string, GradReq> grad_req;    // by argument; kNull where absent
  std::vector<std::string> monitored;         // names of nodes whose outputs must survive fusion

  bool needs_backward() const;
};

// A node with what the passes find out about it.
//
// The inputs of a kBackward node stand at fixed places, with an empty entry for what its plan does not read:
//   out_grad of each output | in_data of each argument | out_data of each output | auxiliary states | saved buffers
// and its output i is the gradient of argument i. A kReorder node gives its input in another layout, or in another type (CastForAmp).
struct ExecNode : Node {
  ExecNode() = default;
  explicit ExecNode(const Node& node) : Node(node) {}

  // Of each output; a kForward node's saved buffers (uint8) follow its outputs.
  std::vector<TensorSpec> specs;
  std::vector<OpReqType> req;       // an output each; kNullOp: not wanted
  std::vector<NodeEntry> adds_to;   // kAddTo: the entry whose bytes this output takes over; empty: none, or an outer array
  std::shared_ptr<const Plan> plan;  // kForward, and the same for its kBackward
  int forward = -1;                 // kBackward: its forward node; kForward and kReorder: the node of which this one is a second run
  bool backward_pass = false;       // made by AddGradient or after it for its sake
  bool derived = false;             // follows from parameters alone: run once per change of them, not per step
  std::vector<std::string> origins;  // the user's nodes that were fused into this one; empty: only itself
  Context ctx;

  int num_outputs() const { return kind == Kind::kForward ? op->NumOutputs() : static_cast<int>(req.size()); }
  int num_aux() const { return static_cast<int>(inputs.size()) - num_args; }  // of kForward
};

struct ExecGraph {
  std::vector<ExecNode> nodes;
  std::vector<NodeEntry> heads;                  // in the order of the user's symbol
  std::vector<int> arguments, auxiliaries;       // variable nodes, in the order of the user's symbol
  std::vector<NodeEntry> gradients;              // of each argument; empty: not wanted. The entry is the outer gradient array
  std::vector<NodeEntry> head_grads;             // variables that hold the gradient of each head; empty: not needed
  int loss_scale = -1;                           // variable node: what gradients are multiplied by where they begin [1]; -1: nothing
  int first_backward = -1;                       // nodes from here on are the backward pass; -1: none

  const TensorSpec& spec(NodeEntry e) const { return nodes[e.node].specs[e.index]; }
};

MXTRAIN_API ExecGraph Infer(const Graph& graph, const BindRequest& request);
MXTRAIN_API ExecGraph Place(ExecGraph graph, const BindRequest& request);       // refuses a second device
// Why mixed precision in this type is not supported on the device; "" where it is.
MXTRAIN_API std::string WhyNoAmp(DType type, Context ctx, Runtime& runtime);
// Throws kConfig where the device cannot, and in float16 for a head that is to be trained and is no loss.
MXTRAIN_API ExecGraph CastForAmp(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph FoldBatchNorm(ExecGraph graph, const BindRequest& request, Runtime& runtime);    // in evaluation alone
MXTRAIN_API ExecGraph FuseElementwise(ExecGraph graph, const BindRequest& request, Runtime& runtime);  // part of fusing
MXTRAIN_API ExecGraph Fuse(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph ChooseLayouts(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph AddGradient(ExecGraph graph, const BindRequest& request, const OperatorRegistry& registry);
MXTRAIN_API ExecGraph FinalizePlans(ExecGraph graph, const BindRequest& request, Runtime& runtime);
MXTRAIN_API ExecGraph Recompute(ExecGraph graph, const BindRequest& request);  // runs forward nodes again to meet the memory budget
// All of the above.
MXTRAIN_API ExecGraph RunPasses(const Graph& graph, const BindRequest& request, Runtime& runtime);

// --- shared by the passes -----------------------------------------------------------------------------------------------------------

// Makes a Plan for a forward node: its kernel when `kernel` is given (or the request is for reference kernels), which may refuse, else the best
// that takes the request. `grad_req` has an entry per argument (empty without backward). Errors name the node and its place.
Expected<std::shared_ptr<const Plan>, Refusal> PlanNode(const ExecGraph& graph, const ExecNode& node, const BindRequest& request,
                                                        Runtime& runtime, std::span<const std::optional<Layout>> in_layout,
                                                        std::span<const OpReqType> grad_req, const char* kernel = nullptr);
// Kernels before the chosen one, with the reasons why they declined: what `plan --kernels` shows.
MXTRAIN_API std::vector<std::pair<std::string, std::string>> Refusals(const ExecGraph& graph, const ExecNode& node, const BindRequest& request,
                                                                      Runtime& runtime);
// Shapes of the arguments of a forward node, without its auxiliary states: what OperatorProperty::ForwardResource takes.
std::vector<TShape> ArgumentShapes(const ExecGraph& graph, const ExecNode& forward);
// Which arguments of each forward node get a gradient: those on a path from a head, or from an operator that needs no head gradient, to a
// variable whose gradient is wanted. [node][argument]; a node without a true one has no backward.
std::vector<std::vector<bool>> WantedGradients(const ExecGraph& graph, const BindRequest& request);
// Number of readers of each entry, heads included: [node][output].
std::vector<std::vector<int>> CountReaders(const ExecGraph& graph);
// "fc1 (net.yaml:31)".
std::string Describe(const Node& node);

}  // namespace mxtrain::executor
