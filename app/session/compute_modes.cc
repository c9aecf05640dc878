// SPDX-License-Identifier: Apache-2.0
#include "app/session/compute_modes.h"

#include "app/config/document.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/executor/passes.h"

namespace mxtrain::session {
namespace {

// The value of train.KEY in a resolved configuration; "" if absent.
std::string TrainKey(const std::string& config_text, const std::string& key) {
  const config::Value root = config::ParseResolved("the model's configuration", config_text);
  const config::Value* train = root.Get("train");
  const config::Value* value = train ? train->Get(key) : nullptr;
  return value ? value->text : "";
}

}  // namespace

ComputeModes ModesOf(const std::string& math, const std::string& amp, bool deterministic) {
  ComputeModes modes;
  modes.math = math == "exact" ? Math::kExact : math == "tf32" ? Math::kTf32 : Math::kFast;
  if (amp == "bf16") modes.amp = DType::kBfloat16;
  if (amp == "fp16") modes.amp = DType::kFloat16;
  modes.deterministic = deterministic;
  return modes;
}

// The units for bfloat16 came with those for rounded float32.
Math MathOn(Math math, Runtime& runtime, Context device) {
  const bool rounds = math == Math::kFast && device.type == DeviceType::kGPU &&
                      runtime.backend(device).WhyNotFastIn(DType::kBfloat16, device).empty();
  return rounds ? Math::kTf32 : math;
}

std::string ModesInConfig(const std::string& config) {
  std::string entries;
  for (const char* key : {"math", "amp"}) {
    const std::string value = TrainKey(config, key);
    if (!value.empty()) entries += format("{}{}: {}", entries.empty() ? "" : ", ", key, value);
  }
  return entries.empty() ? "" : format("train: {{{}}}\n", entries);
}

ComputeModes ModesOf(const Model& model, const ComputeOptions& flags, Runtime& runtime,
                     Context device, const std::map<std::string, Context>& places,
                     const Logger& log) {
  const std::string& text = model.info.modes.empty() ? model.info.config : model.info.modes;
  ComputeModes modes = ModesOf(TrainKey(text, "math"), TrainKey(text, "amp"), flags.deterministic);
  modes.group2ctx = places;
  modes.math = MathOn(modes.math, runtime, device);
  bool several = false;
  for (const auto& [group, its_device] : places) {
    CheckDevice(runtime.backend(its_device), its_device);
    several = several || !(its_device == device);
  }
  if (!modes.amp) return modes;
  const std::string why_device = executor::WhyNoAmp(*modes.amp, device, runtime);
  const std::string why = several              ? "for a net on several devices"
                          : why_device.empty() ? ""
                                               : format("on {}: {}", device.ToString(), why_device);
  if (why.empty()) return modes;
  log.Write(LogLevel::kInfo,
            format("{} was trained in {}, which is not supported {}; computing in float32",
                   model.file, NameOf(*modes.amp), why));
  modes.amp.reset();
  return modes;
}

}  // namespace mxtrain::session
