// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plan of an imperative call, made once per (operator, parameters, specs, requests) and cached
// by the Runtime. Private to this module.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::imperative {

// One call as the user made it.
struct Call {
  std::string_view op;
  const Kwargs& kwargs;
  std::span<const NDArray> in, aux;
  std::span<const NDArray> out;         // empty: the specs of the outputs are inferred
  OpReqType req = OpReqType::kWriteTo;  // of the visible outputs; not kWriteInplace
  Runtime& runtime;
  Context ctx;
};

// Immutable except for the pool of operators, which has its own lock.
class CallPlan {
 public:
  explicit CallPlan(const Call& call);  // throws kConfig for wrong counts, shapes and types

  const char* name() const { return name_; }  // canonical; lives as long as the registry
  const Plan& plan() const { return plan_; }
  int num_visible() const { return num_visible_; }
  const std::vector<TensorSpec>& out() const {
    return out_;
  }  // all outputs, in the layouts of the plan
  const std::vector<ResourceRequest>& resources() const { return resources_; }

  // An operator serves one call at a time; concurrent calls use one each.
  std::unique_ptr<Operator> Borrow();
  void Return(std::unique_ptr<Operator> op);

 private:
  void Infer(const Call& call, const OperatorProperty& property);
  void Choose(const Call& call, const OperatorProperty& property);

  const char* name_ = "";
  int num_visible_ = 0;
  std::vector<TensorSpec> in_, out_, aux_;
  std::vector<ResourceRequest> resources_;
  Plan plan_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Operator>> idle_ MXTRAIN_GUARDED_BY(mutex_);
};

// The plan of a call, from the cache of its Runtime.
std::shared_ptr<CallPlan> PlanOf(const Call& call);

}  // namespace mxtrain::imperative
