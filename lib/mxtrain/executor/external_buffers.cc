// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/external_buffers.h"

#include "mxtrain/base/error.h"

namespace mxtrain::executor {

bool LiesOn(const NDArray& array, Context device) {
  const bool on_gpu = array.ctx().type == DeviceType::kGPU || device.type == DeviceType::kGPU;
  return !on_gpu || array.ctx() == device;
}

// Visits the graph in the order in which buffers are numbered.
struct ExternalBuffers::Maker {
  ExternalBuffers& externals;
  Runtime& runtime;
  const ExecGraph& graph;
  const MemoryPlan& plan;
  const BindRequest& request;
  BoundArrays& bound;

  int BufferOf(NodeEntry entry) const { return plan.buffer_of[entry.node][entry.index]; }
  // On the device of the node that the entry belongs to.
  NDArray New(NodeEntry entry, const std::string& name) const {
    const TensorSpec& spec = graph.spec(entry);
    return NDArray(runtime, spec.shape, spec.type, graph.nodes[entry.node].ctx, spec.layout, name);
  }

  const NDArray& GivenOrNew(ArrayMap* arrays, const std::string& name, NodeEntry entry,
                            bool zero) const {
    const TensorSpec& spec = graph.spec(entry);
    const Context device = graph.nodes[entry.node].ctx;
    auto [found, fresh] = arrays->try_emplace(name);
    NDArray& array = found->second;
    if (fresh) {
      array = New(entry, name);
      if (zero) array.Fill(0);
    }
    if (!(array.spec() == spec)) {
      Throw(ErrorKind::kConfig,
            "array '{}' is {} {} in layout {}; the net needs {} {} in layout {}", name,
            NameOf(array.dtype()), array.shape().ToString(), array.layout().Name(),
            NameOf(spec.type), spec.shape.ToString(), spec.layout.Name());
    }
    if (!LiesOn(array, device)) {
      Throw(ErrorKind::kConfig,
            "array '{}' is on {}, but the net is bound to {}; copy it there first", name,
            array.ctx().ToString(), device.ToString());
    }
    return array;
  }

  void AddArguments() const {
    int inputs = 0;
    for (size_t k = 0; k < graph.arguments.size(); ++k) {
      const int id = graph.arguments[k];
      const ExecNode& node = graph.nodes[id];
      ExternalBuffer external;
      if (request.inputs.contains(node.name)) {
        external.input = inputs++;
        external.spec = node.specs[0];
      } else {
        external.array = GivenOrNew(&bound.args, node.name, {id, 0}, false);
      }
      externals.Add(BufferOf({id, 0}), std::move(external));
      if (const NodeEntry gradient = graph.gradients[k]) {
        ExternalBuffer target;
        target.array = GivenOrNew(&bound.grads, node.name, gradient, true);
        externals.Add(BufferOf(gradient), std::move(target));
      }
    }
  }

  void AddAuxiliaries() const {
    for (int id : graph.auxiliaries) {
      ExternalBuffer external;
      external.array = GivenOrNew(&bound.auxs, graph.nodes[id].name, {id, 0}, false);
      externals.Add(BufferOf({id, 0}), std::move(external));
    }
  }

  void AddLossScale() const {
    if (graph.loss_scale < 0) return;
    const NodeEntry scale{graph.loss_scale, 0};
    if (bound.loss_scale.empty()) {
      bound.loss_scale = New(scale, graph.nodes[scale.node].name);
      bound.loss_scale.Fill(1);
    }
    ExternalBuffer external;
    external.array = bound.loss_scale;
    externals.Add(BufferOf(scale), std::move(external));
  }

  void AddOutputs() const {
    for (const NodeEntry head : graph.heads) {
      const ExecNode& node = graph.nodes[head.node];
      if (node.is_variable()) {
        Throw(ErrorKind::kConfig,
              "output '{}' of the net is a variable; apply an operator to it (_copy)", node.name);
      }
      const int known = externals.of_buffer_[BufferOf(head)];
      ExternalBuffer external;
      external.array = known >= 0 ? externals[known].array : New(head, node.name);
      bound.outputs.push_back(external.array);
      externals.Add(BufferOf(head), std::move(external));
    }
  }

  void AddHeadGrads() const {
    for (size_t i = 0; i < graph.head_grads.size(); ++i) {
      if (!graph.head_grads[i]) continue;
      ExternalBuffer external;
      external.head_grad = static_cast<int>(i);
      external.spec = graph.spec(graph.head_grads[i]);
      externals.Add(BufferOf(graph.head_grads[i]), std::move(external));
    }
  }

  void AddPrecomputed() const {
    for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
      if (!graph.nodes[id].precomputed) continue;
      for (int i = 0; i < static_cast<int>(graph.nodes[id].specs.size()); ++i) {
        ExternalBuffer external;
        external.array = New({id, i}, graph.nodes[id].name);
        externals.Add(BufferOf({id, i}), std::move(external));
      }
    }
  }
};

ExternalBuffers::ExternalBuffers(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                                 const BindRequest& request, BoundArrays* bound)
    : of_buffer_(plan.buffers.size(), -1) {
  const Maker maker{*this, runtime, graph, plan, request, *bound};
  maker.AddArguments();
  maker.AddAuxiliaries();
  maker.AddLossScale();
  maker.AddOutputs();
  maker.AddHeadGrads();
  maker.AddPrecomputed();
  for (size_t b = 0; b < of_buffer_.size(); ++b) {
    if (of_buffer_[b] >= 0) arrays_[of_buffer_[b]].ctx = plan.arenas[plan.buffers[b].arena].ctx;
  }
  NewPort(nullptr);  // the arena
}

void ExternalBuffers::Add(int buffer, ExternalBuffer external) {
  int& number = of_buffer_[buffer];
  if (number >= 0) return;
  number = size();
  external.port = NewPort(external.array.empty() ? nullptr : external.array.var());
  if (external.input >= 0) inputs_.push_back(number);
  if (external.head_grad >= 0) head_grads_.push_back(number);
  arrays_.push_back(std::move(external));
}

int ExternalBuffers::NewPort(engine::VarHandle var) {
  const int port = num_ports();
  if (var) {
    const auto [known, fresh] = port_of_.emplace(var, port);
    if (!fresh) return known->second;
  }
  port_vars_.push_back(var);
  return port;
}

}  // namespace mxtrain::executor
