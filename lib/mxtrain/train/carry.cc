// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/carry.h"

#include <algorithm>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/internal/rebuilding.h"

namespace mxtrain {
namespace {

constexpr size_t kFirstState = 2;  // among the arguments of RNN; among its outputs 1

bool IsRecurrent(const Node& node) {
  return node.kind == Node::Kind::kForward && node.op->TypeString() == "RNN";
}

size_t NumStates(const Node& node) {
  return ParamOf(*node.op, "mode") == "lstm" ? 2 : 1;
}

void RequireCarries(const Graph& graph, const Node& node) {
  if (ParamOf(*node.op, "bidirectional") == params::Print(true)) {
    Throw(
        ErrorKind::kConfig,
        "{} reads its sequences backwards too, from the end of each batch; its states cannot go on",
        DescribeNode(node));
  }
  for (size_t s = 0; s < NumStates(node); ++s) {
    const Node& state = graph.nodes[static_cast<size_t>(node.inputs[kFirstState + s].node)];
    if (!state.op || state.op->TypeString() != "_zeros")
      Throw(ErrorKind::kConfig,
            "{} begins with the states of '{}'; leave them out to carry its own",
            DescribeNode(node), state.name);
  }
}

}  // namespace

CarryingNet WithCarriedStates(const OperatorRegistry& operators, const Symbol& net,
                              const std::vector<std::string>& layers) {
  CarryingNet result;
  result.net = net;
  result.outputs = static_cast<size_t>(net.NumOutputs());
  if (layers.empty()) return result;
  const Graph& graph = net.graph();
  std::set<std::string> wanted(layers.begin(), layers.end());
  std::vector<std::string> recurrent;
  std::vector<Symbol> last;
  const auto build = [&](const Node& node, std::span<const Symbol> inputs) {
    if (!IsRecurrent(node) || wanted.erase(node.name) == 0)
      return Rebuilding::Create(operators, node, node.op->GetParams(), inputs);
    RequireCarries(graph, node);
    Kwargs kwargs = node.op->GetParams();
    std::erase_if(kwargs, [](const auto& param) { return param.first == "state_outputs"; });
    kwargs.emplace_back("state_outputs", params::Print(true));
    std::vector<Symbol> own(inputs.begin(), inputs.end());
    const std::vector<std::string> arguments = node.op->ListArguments();
    const size_t states = NumStates(node);
    for (size_t s = 0; s < states; ++s) {
      result.states.push_back(node.name + "_" + arguments[kFirstState + s]);
      own[kFirstState + s] = Symbol::Variable(result.states.back(), {}, node.where);
    }
    const Symbol layer = Rebuilding::Create(operators, node, kwargs, own);
    for (size_t s = 0; s < states; ++s) {
      const std::vector<Symbol> state{layer[static_cast<int>(1 + s)]};
      last.push_back(Symbol::Create(operators, "BlockGrad",
                                    node.name + "_last_" + arguments[kFirstState + s], {}, state,
                                    {}, {}, node.where));
    }
    return layer;
  };
  for (const Node& node : graph.nodes) {
    if (IsRecurrent(node)) recurrent.push_back(node.name);
  }
  const Symbol built = Rebuilding(graph, {}, build).Of(graph.heads);
  if (!wanted.empty()) {
    Throw(ErrorKind::kConfig, "there is no RNN '{}'{}", *wanted.begin(),
          recurrent.empty() ? " in the net" : format("; the net has {}", join(recurrent, ", ")));
  }
  std::vector<Symbol> heads;
  for (int i = 0; i < built.NumOutputs(); ++i) heads.push_back(built[i]);
  heads.insert(heads.end(), last.begin(), last.end());
  result.net = Symbol::Group(heads);
  return result;
}

std::vector<DataDesc> WithStates(std::vector<DataDesc> arrays, const CarryingNet& net) {
  for (const std::string& name : net.states) arrays.push_back({name, TShape()});
  return arrays;
}

CarriedStates::CarriedStates(Runtime& runtime, const Executor& executor, const CarryingNet& net)
    : executor_(executor) {
  const std::vector<std::string>& inputs = executor.input_names();
  for (size_t s = 0; s < net.states.size(); ++s) {
    const std::string& name = net.states[s];
    const size_t output = net.outputs + s;
    const NDArray& last = executor.outputs()[output];
    const auto input = static_cast<size_t>(std::ranges::find(inputs, name) - inputs.begin());
    states_.push_back(
        {name, input, output,
         NDArray(runtime, last.shape(), DType::kFloat32, last.ctx(), Layout(), name)});
  }
  Zero();
}

void CarriedStates::Zero() {
  for (State& state : states_) state.array.Fill(0);
}

void CarriedStates::PutInto(std::vector<NDArray>* inputs) const {
  for (const State& state : states_) (*inputs)[state.input] = state.array;
}

void CarriedStates::Update() {
  for (State& state : states_) state.array.CopyFrom(executor_.outputs()[state.output]);
}

std::map<std::string, NDArray> CarriedStates::Arrays() const {
  std::map<std::string, NDArray> arrays;
  for (const State& state : states_) arrays[state.name] = state.array;
  return arrays;
}

}  // namespace mxtrain
