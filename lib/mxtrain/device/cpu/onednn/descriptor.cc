// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmath>
#include <new>

#include "mxtrain/device/cpu/onednn/internal/call.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain::onednn {
namespace {

// The library makes code when a primitive is created, and for products when they are first
// computed, and writes it without looking whether it got memory for it. Where the address space is
// limited (ulimit -v), this throws std::bad_alloc in its place.
void RequireRoomForCode() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  constexpr size_t kRoom = size_t{32} << 20;
  void* const room =
      mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, kRoom);
}

// The arguments of the library call are built once; a run only changes pointers.
class BoundPrimitive final : public Primitive {
 public:
  explicit BoundPrimitive(const Descriptor::Impl& impl)
      : one_thread_(impl.one_thread), primitive_(impl.pd.get()), stream_(impl.engine) {
    AddArgument(Arg::kScratchpad, impl.pd.scratchpad_desc(), impl.engine);
    for (const auto& [arg, argument] : impl.arguments)
      AddArgument(arg, argument.memory, impl.engine);
    AddArgument(Arg::kWorkspace, impl.pd.query_md(dnnl::query::workspace_md), impl.engine);
  }

  void Execute(std::span<const Binding> bindings) override {
    for (const Binding& binding : bindings) Bind(binding);
    if (!has_run_) RequireRoomForCode();
    has_run_ = true;
    const OneThread alone(one_thread_);
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success)
      Throw(ErrorKind::kBug, "oneDNN could not run a primitive: status {}",
            static_cast<int>(status));
  }

 private:
  struct Slot {
    Arg arg;
    dnnl::memory memory;
    void* data;
  };

  void AddArgument(Arg arg, const Memory& memory, const dnnl::engine& engine) {
    if (memory.get_size() == 0) return;
    slots_.push_back({arg, dnnl::memory(memory, engine, DNNL_MEMORY_NONE), nullptr});
    arguments_.push_back({ArgNumber(arg), slots_.back().memory.get()});
  }

  // Sets a pointer only if it changed: setting it makes the library write the padding again.
  void Bind(const Binding& binding) {
    for (Slot& slot : slots_) {
      if (slot.arg != binding.arg || slot.data == binding.data) continue;
      if (dnnl_memory_set_data_handle(slot.memory.get(), binding.data) != dnnl_success) {
        Throw(ErrorKind::kBug, "oneDNN rejected a pointer");
      }
      slot.data = binding.data;
    }
  }

  const bool one_thread_;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Slot> slots_;
  std::vector<dnnl_exec_arg_t> arguments_;
  bool has_run_ = false;
};

}  // namespace

int ArgNumber(Arg arg) {
  switch (arg) {
    case Arg::kSrc:
      return DNNL_ARG_SRC;
    case Arg::kDst:
      return DNNL_ARG_DST;
    case Arg::kWeights:
      return DNNL_ARG_WEIGHTS;
    case Arg::kBias:
      return DNNL_ARG_BIAS;
    case Arg::kWorkspace:
      return DNNL_ARG_WORKSPACE;
    case Arg::kScratchpad:
      return DNNL_ARG_SCRATCHPAD;
    case Arg::kDiffSrc:
      return DNNL_ARG_DIFF_SRC;
    case Arg::kDiffDst:
      return DNNL_ARG_DIFF_DST;
    case Arg::kDiffWeights:
      return DNNL_ARG_DIFF_WEIGHTS;
    case Arg::kDiffBias:
      return DNNL_ARG_DIFF_BIAS;
  }
  Throw(ErrorKind::kBug, "argument {} is unknown to oneDNN", static_cast<int>(arg));
}

dnnl::engine CpuEngine() {
  return dnnl::engine(dnnl::engine::kind::cpu, 0);
}

dnnl::primitive_attr Attributes(bool accumulate, const Bounds& bounds) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post;
  if (accumulate) post.append_sum(1.0f);
  if (std::isfinite(bounds.high)) {
    library::AppendEltwise(post, dnnl::algorithm::eltwise_clip, bounds.low, bounds.high);
  } else if (std::isfinite(bounds.low)) {
    MXTRAIN_ASSERT(bounds.low == 0);
    library::AppendEltwise(post, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  }
  if (post.len() > 0) attributes.set_post_ops(post);
  return attributes;
}

Result Describe(Backend& backend, const dnnl::engine& engine, dnnl::primitive_desc_base pd,
                std::span<const ArrayArg> args) {
  auto impl = std::make_shared<Descriptor::Impl>();
  for (const ArrayArg& a : args) {
    Memory memory = pd.query_md(dnnl::query::exec_arg_md, ArgNumber(a.arg));
    // Batch normalization does not describe its scale and shift.
    if (memory.get_size() == 0 && a.array.layout) memory = MemoryOf(a.array, a.groups);
    const std::optional<Layout> layout =
        a.array.layout ? a.array.layout
                       : onednn::LayoutOf(memory, a.array.shape, a.groups, backend);
    if (!layout) return Refusal{"oneDNN chose a layout that is not supported here"};
    impl->arguments[a.arg] = {*layout, memory};
  }
  impl->engine = engine;
  impl->pd = std::move(pd);
  impl->backend = &backend;
  impl->one_thread = TeamSize() == 1;
  return Descriptor(std::move(impl));
}

Layout Descriptor::LayoutOf(Arg arg) const {
  return impl_->arguments.at(arg).layout;
}

int64_t Descriptor::scratchpad_bytes() const {
  return static_cast<int64_t>(impl_->pd.scratchpad_desc().get_size());
}

int64_t Descriptor::workspace_bytes() const {
  return static_cast<int64_t>(impl_->pd.query_md(dnnl::query::workspace_md).get_size());
}

Speed Descriptor::speed() const {
  const std::string name = impl_->pd.impl_info_str();  // "jit:avx2"
  if (name.find("gemm") != std::string::npos) return Speed::kGemm;
  return name.find("ref") != std::string::npos || name.find("simple") != std::string::npos
             ? Speed::kReference
             : Speed::kDirect;
}

std::unique_ptr<Primitive> Descriptor::Make() const {
  impl_->backend->EnterThread();
  RequireRoomForCode();
  const OneThread alone(impl_->one_thread);
  return std::make_unique<BoundPrimitive>(*impl_);
}

}  // namespace mxtrain::onednn
