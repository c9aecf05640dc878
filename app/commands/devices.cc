// SPDX-License-Identifier: Apache-2.0
// mxtrain devices: the devices of this machine and this build.
#include <iostream>

#include "app/commands/command_list.h"
#include "app/report/output.h"
#include "app/session/session.h"
#include "mxtrain/device/cpu/onednn/version.h"
#include "mxtrain/device/gpu_library.h"

const char* MxtrainVersion();  // written by the build: scripts/cmake/MxtrainVersion.cmake

namespace mxtrain::commands {
namespace {

std::string OneDnn() {
  const std::string version = OneDnnVersion();
  return version.empty() ? "without oneDNN" : "oneDNN " + version;
}

std::string VersionList(const Backend& backend) {
  std::string list;
  for (const Version& v : backend.Versions())
    list += format("{}{} {}", list.empty() ? "" : ", ", v.of, v.version);
  return list;
}

Json GpuFacts(const Backend& gpu) {
  Json facts = {{"count", gpu.DeviceCount()},
                {"why_absent", gpu.WhyAbsent()},
                {"devices", Json::array()},
                {"versions", Json::object()}};
  for (int id = 0; id < gpu.DeviceCount(); ++id) {
    const DeviceInfo info = gpu.Describe(id);
    facts["devices"].push_back({{"name", info.name},
                                {"bytes", info.bytes},
                                {"free_bytes", info.free_bytes},
                                {"capability", info.capability}});
  }
  for (const Version& v : gpu.Versions()) facts["versions"][v.of] = v.version;
  return facts;
}

class Devices final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments = line.Add("devices", "list compute devices");
    arguments.Examples("  mxtrain devices\n  mxtrain devices --json");
  }

  int Run(const CommonFlags& flags, console::Console&) override {
    const auto cpu = NewCpuBackend(flags.threads);
    const auto gpu = NewGpuBackend();
    const DeviceInfo processor = cpu->Describe(0);
    if (flags.json) {
      const Json result = {{"cpu",
                            {{"model", processor.name},
                             {"threads", cpu->threads()},
                             {"features", processor.capability},
                             {"onednn", OneDnnVersion()}}},
                           {"gpu", GpuFacts(*gpu)}};
      std::cout << report::JsonText(result, 2) << "\n";
      return 0;
    }
    std::cout << format("cpu     {}, {} threads ({}), {}\n", processor.name, cpu->threads(),
                        processor.capability, OneDnn());
    if (gpu->DeviceCount() == 0) std::cout << format("gpu     none: {}\n", gpu->WhyAbsent());
    for (int id = 0; id < gpu->DeviceCount(); ++id) {
      const DeviceInfo info = gpu->Describe(id);
      std::cout << format("gpu:{}   {}, {} ({} free), compute capability {}\n", id, info.name,
                          FormatBytes(info.bytes), FormatBytes(info.free_bytes), info.capability);
    }
    if (!gpu->Versions().empty()) std::cout << format("cuda    {}\n", VersionList(*gpu));
    return 0;
  }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> BuildFacts() {
  const DeviceInfo processor = NewCpuBackend(1)->Describe(0);
  return {{"mxtrain", MxtrainVersion()},
          {"libraries", OneDnn() + (GpuLibraryPath().empty() ? ", without CUDA" : ", with CUDA")},
          {"compiler", __VERSION__},
          {"cpu", format("{} ({})", processor.name, processor.capability)}};
}

std::string VersionText() {
  const auto facts = BuildFacts();
  return format("mxtrain {}\n{}; compiler {}\n{}", facts[0].second, facts[1].second,
                facts[2].second, facts[3].second);
}

MXTRAIN_COMMAND(devices, list) {
  list.Add(HelpGroup::kReference, 30, std::make_unique<Devices>());
}

}  // namespace mxtrain::commands
