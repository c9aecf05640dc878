// SPDX-License-Identifier: Apache-2.0
#include "app/session/open_runtime.h"

#include <cctype>
#include <utility>

#include "app/session/device_choice.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::session {
namespace {

// Reports which device `auto` is, if there is a choice.
void TellAutoDevice(Runtime& runtime, Context device, const Logger& log) {
  if (device.type == DeviceType::kGPU) {
    log.Write(LogLevel::kInfo, format("--device auto: {}, {}", device.ToString(),
                                      runtime.backend(device).Describe(device.id).name));
  } else if (const std::string& why = FindAutoDevice().why_not; !why.empty()) {
    log.Write(LogLevel::kDebug, format("--device auto: the CPU, since {}", why));
  }
}

}  // namespace

std::shared_ptr<OperatorRegistry> MakeRegistry(const std::vector<std::string>& plugins,
                                               DeviceType device) {
  auto registry = BuiltinOperators(device);
  for (const std::string& path : plugins) registry->LoadPlugin(path);
  return registry;
}

std::vector<std::string> PublicOperators(const OperatorRegistry& registry) {
  std::vector<std::string> names = registry.Names();
  std::erase_if(names, [](const std::string& name) {
    constexpr size_t kFirst = 1;
    const bool made_here =
        name.size() > kFirst && std::isupper(static_cast<unsigned char>(name[kFirst])) != 0;
    return name.starts_with("_") && (made_here || name.ends_with("_update"));
  });
  return names;
}

int CpuWorkersFor(const ComputeOptions& flags, Context device) {
  return device.type == DeviceType::kGPU ? 1 : flags.cpu_workers;
}

std::unique_ptr<Runtime> MakeRuntime(const ComputeOptions& flags, uint64_t seed,
                                     std::shared_ptr<const OperatorRegistry> registry,
                                     const std::shared_ptr<Log>& log) {
  const Logger logger = log->For("program");
  const std::vector<Context> devices = DevicesOf(flags);
  RuntimeOptions options;
  options.engine = flags.engine;
  options.threads = flags.threads;
  options.cpu_workers = CpuWorkersFor(flags, devices[0]);
  options.seed = seed;
  options.log = log;
  options.strict_device = flags.strict_device;
  auto runtime = std::make_unique<Runtime>(options, std::move(registry));
  for (const Context device : devices) CheckDevice(runtime->backend(device), device);
  if (options.cpu_workers != flags.cpu_workers) {
    logger.Write(LogLevel::kInfo,
                 format("--cpu-workers is for nets on the CPU; on {} one worker has all threads",
                        devices[0].ToString()));
  }
  if (flags.device == "auto") TellAutoDevice(*runtime, devices[0], logger);
  return runtime;
}

}  // namespace mxtrain::session
