// SPDX-License-Identifier: Apache-2.0
#pragma once
// --device and --place: the devices that they select on this machine.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "app/session/request.h"
#include "mxtrain/device/context.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain::session {

// "cpu", "gpu", "gpu:1", "gpu:0,1"; auto: the CPU if count_gpus() is 0, else the first GPU, or of
// several processes on a machine the one with the process's number there. `count_gpus` is called
// only for auto. Throws kUsage for an invalid or repeated device.
std::vector<Context> ParseDevices(const std::string& flag, const std::function<int()>& count_gpus,
                                  int local_rank = 0);

// The device for `auto` in this process, determined on first use. Without the CUDA backend or
// NVIDIA's driver, no CUDA library is loaded.
struct AutoDevice {
  int gpus = 0;
  std::string why_not;  // "" if there is a GPU, or no CUDA backend
};
const AutoDevice& FindAutoDevice();

std::vector<Context> DevicesOf(const ComputeOptions& flags);
// For commands that use one device: throws kUsage for several.
Context DeviceOf(const ComputeOptions& flags);
// "GROUP=DEVICE" each, such as "encoder=cpu(1)": the devices of groups of layers. Throws kUsage for
// anything else and for a repeated group.
std::map<std::string, Context> ParsePlaces(const std::vector<std::string>& places);
// Removes the places of groups that `whole` has and `part`, which was cut out of it, has no more.
void DropRemovedGroups(const Symbol& whole, const Symbol& part,
                       std::map<std::string, Context>* places);
// For commands that compute little and must respond quickly: auto is the CPU.
ComputeOptions WithoutAutoGpu(ComputeOptions flags);

}  // namespace mxtrain::session
