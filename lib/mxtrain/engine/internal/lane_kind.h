// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which workers serve a function: the table's key, one worker pool for each.
#include <compare>
#include <string>

#include "mxtrain/device/context.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::engine {

// Every FnProperty except IO, which runs on the host, has its own workers on every device. Logical
// CPU devices, cpu(1) and so on, compute on workers of their own and share the host's others;
// pinned memory is the host's.
struct LaneKind {
  Context ctx;
  FnProperty property = FnProperty::kNormal;
  auto operator<=>(const LaneKind&) const = default;
};

LaneKind LaneKindOf(Context ctx, FnProperty property);
// "cpu compute", "cpu(1) compute", "cpu io": the tracks of a trace.
std::string NameOf(LaneKind kind);
// kDevice: the engine has no workers of that kind.
[[noreturn]] void ThrowNoWorkers(Context ctx, const char* name);
// kBug: a variable appears twice in one push.
[[noreturn]] void ThrowRepeatedVar(const char* name);
// kBug: a push without a function.
[[noreturn]] void ThrowNoFunction(const char* name);

}  // namespace mxtrain::engine
