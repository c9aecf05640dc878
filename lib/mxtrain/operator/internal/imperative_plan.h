// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plan of an imperative call, made once per (operator, parameters, specs, requests) and cached
// by the Runtime. Plans that take the scalar are made once for all its values. Private to this
// module.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/imperative.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::imperative {

// One call as the user made it.
struct Call {
  std::string_view op;
  const CallParams& params;
  std::span<const NDArray> in, aux;
  std::span<const NDArray> out;         // empty: the specs of the outputs are inferred
  OpReqType req = OpReqType::kWriteTo;  // of the visible outputs; not kWriteInplace
  Runtime& runtime;
  Context ctx;
  bool is_train = false;
};

// Immutable except for the pool of operators, which has its own lock.
class CallPlan {
 public:
  explicit CallPlan(const Call& call);  // throws kConfig for wrong counts, shapes and types

  const char* name() const { return name_; }  // canonical; lives as long as the registry
  // The graph of a composite that no kernel takes; then there is no plan.
  const std::optional<Lowering>& lowered() const { return lowered_; }
  const Plan& plan() const { return plan_; }
  // Whether the call gives OpContext::scalar, if it has CallParams::Scalar.
  bool takes_scalar() const { return takes_scalar_; }
  bool is_train() const { return is_train_; }
  int num_visible() const { return num_visible_; }
  const std::vector<TensorSpec>& out() const {
    return out_;
  }  // all outputs, in the layouts of the plan
  // What the device must give: a host kernel brings its own temporary space.
  const std::vector<ResourceRequest>& resources() const { return resources_; }

  // An operator serves one call at a time; concurrent calls use one each. Those that are returned
  // are kept, except host kernels, which hold memory.
  std::unique_ptr<Operator> Borrow();
  void Return(std::unique_ptr<Operator> op);

 private:
  void Infer(const Call& call, const OperatorProperty& property);
  void Choose(const Call& call, const OperatorProperty& property);
  bool LowersInstead(const OperatorProperty& property, const PlanRequest& request,
                     const OperatorRegistry& registry, Backend& backend);

  const char* name_ = "";
  int num_visible_ = 0;
  bool takes_scalar_ = false, is_train_ = false;
  std::vector<TensorSpec> in_, out_, aux_;
  std::vector<ResourceRequest> resources_;
  std::optional<Lowering> lowered_;
  Plan plan_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Operator>> idle_ MXTRAIN_GUARDED_BY(mutex_);
};

// Plans that a Runtime keeps: those most recently used.
inline constexpr size_t kMostPlans = 4096;

// The plan of a call, from the cache of its Runtime.
std::shared_ptr<CallPlan> PlanOf(const Call& call);

// How many plans PlanOf has made for the Runtime.
MXTRAIN_API int64_t PlansMade(Runtime& runtime);

}  // namespace mxtrain::imperative
