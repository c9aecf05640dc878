#pragma once
// --device: what it names on this machine.
#include <functional>
#include <string>
#include <vector>

#include "app/commands/command.h"
#include "mxtrain/device/context.h"

namespace mxtrain::commands {

// "cpu", "gpu", "gpu:1", "gpu:0,1"; auto: the first GPU where `sees_gpu`, which is asked for nothing else, says that there is one, else the
// CPU. Throws kUsage for what names no device, or one twice.
std::vector<Context> ParseDevices(const std::string& flag, const std::function<bool()>& sees_gpu);

// What `auto` is in this process, found when it is first asked for. Without a GPU half or without NVIDIA's driver nothing of CUDA is
// loaded.
struct AutoDevice {
  bool gpu = false;
  std::string why_not;  // "" where there is a GPU, or no GPU half
};
const AutoDevice& FindAutoDevice();

std::vector<Context> DevicesOf(const CommonFlags& flags);
Context DeviceOf(const CommonFlags& flags);  // for who computes on one: several are refused with kUsage
// For who computes next to nothing and is to answer at once: auto is the CPU.
CommonFlags WithoutAutoGpu(CommonFlags flags);

}  // namespace mxtrain::commands
