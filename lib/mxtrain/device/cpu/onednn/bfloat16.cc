// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/onednn/bfloat16.h"

#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/onednn/internal/call.h"

namespace mxtrain {

namespace {

// The instruction sets are numbered by bit masks; each version of the library adds some.
constexpr bool MultipliesBfloat16(dnnl::cpu_isa isa) {
  constexpr unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;
  return (static_cast<unsigned>(isa) & wanted) == wanted;
}
static_assert(MultipliesBfloat16(dnnl::cpu_isa::avx512_core_bf16) &&
              MultipliesBfloat16(dnnl::cpu_isa::avx512_core_amx));
static_assert(!MultipliesBfloat16(dnnl::cpu_isa::avx512_core_vnni) &&
              !MultipliesBfloat16(dnnl::cpu_isa::avx2));
// Version 3's avx512_core_fp16 and amx_fp16.
static_assert(MultipliesBfloat16(dnnl::cpu_isa{0x1ef}) &&
              MultipliesBfloat16(dnnl::cpu_isa{0x1fef}));

}  // namespace

std::string WhyNoBfloat16() {
  return MultipliesBfloat16(dnnl::get_effective_cpu_isa()) ? "" : "it has no avx512_bf16";
}

std::string onednn::WhyNotType(DType type) {
  if (type == DType::kFloat32) return "";
  if (type != DType::kBfloat16) return "float32 and bfloat16 only";
  const std::string why = WhyNoBfloat16();
  return why.empty() ? "" : format("bfloat16 on this processor: {}", why);
}

}  // namespace mxtrain
