#pragma once
// Which workers serve a function: the table's key, one worker pool for each.
#include <compare>
#include <string>

#include "mxtrain/device/context.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::engine {

// Every FnProperty but IO, which is the host's, has workers of its own on every device; all CPU contexts (logical devices, pinned memory)
// share those of the host.
struct LaneKind {
  Context ctx;
  FnProperty property = FnProperty::kNormal;
  auto operator<=>(const LaneKind&) const = default;
};

LaneKind LaneKindOf(Context ctx, FnProperty property);
// "cpu compute", "cpu io": the rows of a trace.
std::string NameOf(LaneKind kind);
// kDevice: the engine has no workers of that kind.
[[noreturn]] void ThrowNoWorkers(Context ctx, const char* name);
// kBug: a variable stands twice in one push.
[[noreturn]] void ThrowRepeatedVar(const char* name);
// kBug: a push without a function.
[[noreturn]] void ThrowNoFunction(const char* name);

}  // namespace mxtrain::engine
