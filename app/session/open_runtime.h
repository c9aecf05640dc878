// SPDX-License-Identifier: Apache-2.0
#pragma once
// Opens what computes: the registry of operators with its plug-ins, and the runtime on the devices
// of the flags.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/session/request.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::session {

// A registry with the built-in operators and the plug-ins of flags and configuration.
std::shared_ptr<OperatorRegistry> MakeRegistry(const std::vector<std::string>& plugins,
                                               DeviceType device = DeviceType::kCPU);
// Those that layers of a net may be, also with MXNet's leading underscore (_mul_scalar). Without
// operators that only passes and the trainer use: an underscore and a capital, or an update.
std::vector<std::string> PublicOperators(const OperatorRegistry& registry);
// The workers of the runtime for --cpu-workers: one for a GPU. Its nets use the CPU for one
// operator at a time, if for any (operator/host_kernel.h), and that has all threads.
int CpuWorkersFor(const ComputeOptions& flags, Context device);
// Reports which device `--device auto` is, if it is a GPU. Throws kDevice for a missing device.
std::unique_ptr<Runtime> MakeRuntime(const ComputeOptions& flags, uint64_t seed,
                                     std::shared_ptr<const OperatorRegistry> registry,
                                     const std::shared_ptr<Log>& log);

}  // namespace mxtrain::session
