// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the sources of this folder. This header and library.h, which hides oneDNN's version,
// are the only ones that expose oneDNN.
#include <exception>
#include <map>
#include <vector>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/one_thread.h"
#include "mxtrain/device/cpu/onednn/internal/library.h"
#include "mxtrain/device/cpu/onednn/onednn.h"

namespace mxtrain::onednn {

// Groups of a convolution's weights: oneDNN's array has one more axis than ours.
inline constexpr int64_t kNoGroups = 0;

dnnl::memory::dims DimsOf(const TShape& shape);
dnnl::memory::data_type TypeOf(DType type);
// Shape and layout as a oneDNN description; "any" without a layout. With groups, [O, I/groups, ...]
// becomes [groups, O/groups, I/groups, ...]. Throws kBug for a layout that is not a BlockedLayout,
// dnnl::error for one that the library cannot describe.
Memory MemoryOf(const Array& array, int64_t groups = kNoGroups);
// nullopt: oneDNN's description has no equivalent among our layouts (opaque formats, blocks padded
// inside a group). Axes of length one leave the order open; they take the natural order, so equal
// memory gives equal layouts.
std::optional<Layout> LayoutOf(const Memory& memory, const TShape& shape, int64_t groups,
                               Backend& backend);

struct ArrayArg {
  Arg arg;
  Array array;
  int64_t groups = kNoGroups;
};

struct Descriptor::Impl {
  dnnl::engine engine;
  dnnl::primitive_desc_base pd;
  struct Argument {
    Layout layout;
    Memory memory;
  };
  std::map<Arg, Argument> arguments;
  Backend* backend = nullptr;
  bool one_thread = false;  // described, made and run on one thread
};

dnnl::engine CpuEngine();
// Scratchpad in user mode.
dnnl::primitive_attr Attributes(bool accumulate = false, const Bounds& bounds = {});
int ArgNumber(Arg arg);
// Reads the chosen layouts of `args`; refuses if one has no equivalent among ours.
Result Describe(Backend& backend, const dnnl::engine& engine, dnnl::primitive_desc_base pd,
                std::span<const ArrayArg> args);

// Calls f(engine) -> Result in the backend's team, or on one thread; oneDNN errors become refusals.
template <typename F>
Result Build(Backend& backend, F&& f, bool one_thread = false) {
  backend.EnterThread();
  const OneThread alone(one_thread);
  try {
    return f(CpuEngine());
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.message};
  }
}

}  // namespace mxtrain::onednn
