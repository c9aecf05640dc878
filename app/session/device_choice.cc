// SPDX-License-Identifier: Apache-2.0
#include "app/session/device_choice.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/gpu_library.h"

namespace mxtrain::session {

// "gpu:0,1": what follows a comma is the number of another device of the same kind.
std::vector<Context> ParseDevices(const std::string& flag, const std::function<int()>& count_gpus,
                                  int local_rank) {
  if (flag == "auto") {
    const int gpus = count_gpus();
    return {gpus > 0 ? Context::gpu(local_rank % gpus) : Context::cpu()};
  }
  std::istringstream items(flag);
  std::vector<Context> devices;
  std::string kind;
  for (std::string item; std::getline(items, item, ',');) {
    const Context device = Context::Parse(devices.empty() ? item : format("{}:{}", kind, item));
    if (devices.empty()) kind = item.substr(0, item.find(':'));
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      Throw(ErrorKind::kUsage, "--device {} lists {} twice", flag, device.ToString());
    }
    devices.push_back(device);
  }
  if (devices.empty() || flag.ends_with(',')) Context::Parse(flag);  // throws
  if (devices.size() > 1 && devices[0].type != DeviceType::kGPU) {
    Throw(ErrorKind::kUsage,
          "--device {}: several devices must be GPUs, such as gpu:0,1; on the CPU use "
          "train.kvstore.workers to split a batch",
          flag);
  }
  return devices;
}

const AutoDevice& FindAutoDevice() {
  static const AutoDevice found = []() -> AutoDevice {
    if (GpuLibraryPath().empty()) return {};
    if (!HasGpuDriver()) return {0, "there is no NVIDIA driver (libcuda.so.1) on this machine"};
    const auto gpu = NewGpuBackend();
    return {gpu->DeviceCount(), gpu->WhyAbsent()};
  }();
  return found;
}

std::vector<Context> DevicesOf(const ComputeOptions& flags) {
  return ParseDevices(
      flags.device, [] { return FindAutoDevice().gpus; }, flags.local_rank);
}

Context DeviceOf(const ComputeOptions& flags) {
  const std::vector<Context> devices = DevicesOf(flags);
  if (devices.size() > 1)
    Throw(ErrorKind::kUsage, "--device {} is only for training; give one device, {}", flags.device,
          devices[0].ToString());
  return devices[0];
}

std::map<std::string, Context> ParsePlaces(const std::vector<std::string>& places) {
  std::map<std::string, Context> parsed;
  for (const std::string& place : places) {
    const size_t at = place.rfind('=');
    if (at == 0 || at == std::string::npos) {
      Throw(ErrorKind::kUsage,
            "--place {}: expected GROUP=DEVICE, a ctx_group of the net and its device, such as "
            "encoder=cpu(1)",
            place);
    }
    const std::string group = place.substr(0, at);
    try {
      if (parsed.emplace(group, Context::Parse(place.substr(at + 1))).second) continue;
    } catch (const Error& e) {
      Throw(e.kind(), "--place {}: {}, or cpu(N) for a logical CPU device", place, e.what());
    }
    Throw(ErrorKind::kUsage, "--place {}: group '{}' has a device already", place, group);
  }
  return parsed;
}

void DropRemovedGroups(const Symbol& whole, const Symbol& part,
                       std::map<std::string, Context>* places) {
  const auto groups_of = [](const Symbol& symbol) {
    std::set<std::string> groups;
    for (const auto& [name, attrs] : symbol.ListAttrs()) {
      if (const auto found = attrs.find("ctx_group"); found != attrs.end())
        groups.insert(found->second);
    }
    return groups;
  };
  const std::set<std::string> before = groups_of(whole), after = groups_of(part);
  std::erase_if(*places, [&](const auto& place) {
    return before.contains(place.first) && !after.contains(place.first);
  });
}

ComputeOptions WithoutAutoGpu(ComputeOptions flags) {
  if (flags.device == "auto") flags.device = "cpu";
  return flags;
}

}  // namespace mxtrain::session
