// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host kernel: what runs an operator on a GPU that has no kernel for it. A kernel of the CPU
// computes it, between a copy of its arrays to the host and one back, in the order of the stream.
// So every net runs on a GPU from its first day, if slowly. RuntimeOptions::strict_device refuses
// it.
//
// Forward and Backward block the thread that issues the work until the device has reached them, so
// they cannot be captured (Stream::BeginCapture). Workspace, temporary space and saved bytes are
// host memory of the kernel, allocated with it (space of unknown size is taken from the CPU's
// pool): the device has none of them, and the kernel ignores what OpContext says of them. The
// arrays' copies are pinned memory, allocated with it too: delete a kernel that is idle.
#include <string>
#include <string_view>

#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Plan::kernel of the host kernel. No registered kernel has this name.
inline constexpr char kHostKernel[] = "host";
inline bool RunsOnHost(const Plan& plan) {
  return std::string_view(plan.kernel) == kHostKernel;
}

struct HostPlanOptions {
  bool writes_aux = true;  // Forward changes auxiliary states; else they are not copied back
  bool reference = false;  // by the last kernel of the CPU only
};

// The plan of the best kernel on the request's device; on a GPU where none accepts, that of the
// host kernel, unless the runtime is strict. Throws kConfig, with every refusal, if there is none.
// The runtime must outlive the plan's operators.
MXTRAIN_API Plan PlanOnDevice(const OperatorProperty& property, const PlanRequest& request,
                              Runtime& runtime, const HostPlanOptions& options = {});

// The plan of the host kernel for a request on a GPU: all arrays plain. Refuses, with the reasons,
// if no kernel of the CPU takes plain arrays of these types.
MXTRAIN_API Expected<Plan, Refusal> PlanOnHost(const OperatorProperty& property,
                                               const PlanRequest& request, Runtime& runtime,
                                               const HostPlanOptions& options = {});

// Logs that an operator runs on the host in place of `ctx`, once for each operator and runtime.
// `layer`: "layer 'fc1', net.yaml:12"; "" for a call on arrays.
MXTRAIN_API void LogHostKernel(Runtime& runtime, Context ctx, const std::string& op,
                               const std::string& layer = "");

}  // namespace mxtrain
