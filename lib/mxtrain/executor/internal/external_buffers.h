// SPDX-License-Identifier: Apache-2.0
#pragma once
// External buffers: the arrays of a bound net outside the arena. Parameters, gradients, auxiliary
// states, outputs, precomputed parameters and the loss scale stay the same from run to run; inputs
// and head gradients change. In frozen sequences each is a port (engine/engine.h); arrays that
// share a variable share a port.
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain::executor {

using ArrayMap = std::map<std::string, NDArray>;

struct BoundArrays {
  ArrayMap args, grads, auxs;  // by name
  std::vector<NDArray> outputs;
  NDArray loss_scale;  // empty if the graph has none
};

struct ExternalBuffer {
  NDArray array;  // empty if each run brings its own
  Context ctx;    // its device: that of its node
  int port = -1;
  int input = -1;      // index into the names of the inputs, or -1
  int head_grad = -1;  // index of the output, or -1
  TensorSpec spec;     // of inputs and head gradients
};

// Whether kernels of the device can use the array in place: the CPU also takes pinned memory.
bool LiesOn(const NDArray& array, Context device);

class ExternalBuffers {
 public:
  // Uses the arrays in `bound` and adds the missing ones; outputs are always new. Throws kConfig
  // naming an array of the wrong shape, type or layout, or on another device, and an output that is
  // a variable.
  ExternalBuffers(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                  const BindRequest& request, BoundArrays* bound);

  int size() const { return static_cast<int>(arrays_.size()); }
  const ExternalBuffer& operator[](int i) const { return arrays_[i]; }
  const std::vector<int>& of_buffer() const {
    return of_buffer_;
  }  // by buffer of the plan; -1: in the arena
  const std::vector<int>& inputs() const { return inputs_; }          // in order of the arguments
  const std::vector<int>& head_grads() const { return head_grads_; }  // in order of the outputs
  // Whether a permanent array has this variable.
  bool Owns(engine::VarHandle var) const { return port_of_.contains(var); }

  int num_ports() const { return static_cast<int>(port_vars_.size()); }
  int arena_port() const { return num_ports() - 1; }
  engine::VarHandle port_var(int port) const { return port_vars_[port]; }
  // For an array that changes, and for the arena, which may have grown.
  void SetPort(int port, engine::VarHandle var) { port_vars_[port] = var; }

 private:
  struct Maker;
  void Add(int buffer, ExternalBuffer external);  // the first array of a buffer represents it
  int NewPort(engine::VarHandle var);

  std::vector<ExternalBuffer> arrays_;
  std::vector<int> of_buffer_, inputs_, head_grads_;
  std::vector<engine::VarHandle> port_vars_;
  std::unordered_map<engine::VarHandle, int> port_of_;  // of permanent arrays
};

}  // namespace mxtrain::executor
