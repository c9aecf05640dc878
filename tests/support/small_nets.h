// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small nets that together cover the cases of the executor's passes: chains, residual sums,
// concatenation, shared weights, several losses, random draws, statistics. Also helpers that bind
// them and feed them with numbers that depend only on names.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"

namespace mxtrain::test {

struct SmallNet {
  std::string name;
  Symbol losses;    // heads are losses
  Symbol features;  // the input of the losses
  std::map<std::string, TShape> data, labels;
  int classes = 0;  // labels are indices below it; 0: real values
};

// mlp, residual (convolution, batch norm, relu, sum), inception (concatenation, pooling), shared
// (one weight for two inputs), several (three losses on one trunk).
std::vector<SmallNet> SmallNets(const OperatorRegistry& registry);
// Also with Dropout.
SmallNet DropoutNet(const OperatorRegistry& registry);

// The symbol with operator i, in topological order, in the ctx_group group_of(i); "": in none.
Symbol Grouped(const OperatorRegistry& registry, const Symbol& symbol,
               const std::function<std::string(int)>& group_of);
// The operators in groups `a` and `b` in turn.
Symbol InTurns(const OperatorRegistry& registry, const Symbol& symbol);

// A Runtime with the operators shared by all tests of a process.
std::unique_ptr<Runtime> NewRuntime(const std::string& engine = "threaded", int threads = 2,
                                    uint64_t seed = 3, int cpu_workers = 1);

// Values in [-1, 1] (class indices for class labels), determined by the name.
std::vector<double> ValuesFor(const std::string& name, int64_t size, int classes = 0);
// Plain, of float32 or float64.
void SetValues(NDArray array, const std::vector<double>& values);
std::vector<double> GetValues(const NDArray& array);

// Inputs for the variables that `shapes` names, in the order of `names`.
std::vector<NDArray> MakeInputs(Runtime& runtime, const SmallNet& net,
                                const std::vector<std::string>& names, DType type = DType::kFloat32,
                                const std::string& salt = "");

// A request for the losses of a net (or its features): inputs, their shapes and types, and a
// gradient of every parameter.
executor::BindRequest RequestFor(const SmallNet& net, const Symbol& symbol,
                                 DType type = DType::kFloat32);
// Fills every parameter and auxiliary state with the values of its name: gammas and variances are
// positive.
void SetParameters(const Executor& executor);
std::unique_ptr<Executor> BindWithValues(Runtime& runtime, const Symbol& symbol,
                                         const executor::BindRequest& request);
// Everything that a run writes, by name: "output 0", "gradient of fc1_weight", "bn1_moving_mean".
using Result = std::map<std::string, std::vector<double>>;
Result ResultOf(const Executor& executor);

}  // namespace mxtrain::test
