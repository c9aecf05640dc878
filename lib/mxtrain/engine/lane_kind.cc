// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/lane_kind.h"

#include "mxtrain/base/error.h"

namespace mxtrain::engine {

const char* NameOf(FnProperty property) {
  switch (property) {
    case FnProperty::kNormal:
      return "compute";
    case FnProperty::kCopyFromDevice:
      return "copy from device";
    case FnProperty::kCopyToDevice:
      return "copy to device";
    case FnProperty::kIO:
      return "io";
    case FnProperty::kComm:
      return "communication";
  }
  Throw(ErrorKind::kBug, "function property {} is unknown", static_cast<int>(property));
}

LaneKind LaneKindOf(Context ctx, FnProperty property) {
  const bool on_gpu = ctx.type == DeviceType::kGPU && property != FnProperty::kIO;
  const bool computes = ctx.type == DeviceType::kCPU && property == FnProperty::kNormal;
  return {on_gpu || computes ? ctx : Context::cpu(), property};
}

std::string NameOf(LaneKind kind) {
  return (kind.ctx == Context::cpu() ? "cpu" : kind.ctx.ToString()) + " " + NameOf(kind.property);
}

void ThrowNoWorkers(Context ctx, const char* name) {
  Throw(ErrorKind::kDevice,
        "'{}' was pushed to {}, for which this engine has no workers; push it to an existing "
        "device, such as cpu(0)",
        name, ctx.ToString());
}

void ThrowRepeatedVar(const char* name) {
  Throw(ErrorKind::kBug,
        "'{}' names one variable twice in a push; make the lists distinct with DeduplicateVars",
        name);
}

void ThrowNoFunction(const char* name) {
  Throw(ErrorKind::kBug, "'{}' was pushed without a function to call", name);
}

}  // namespace mxtrain::engine
