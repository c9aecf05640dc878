#include "mxtrain/device/cpu/onednn/bfloat16.h"

#include "mxtrain/base/format.h"
#include "mxtrain/device/cpu/onednn/internal.h"

namespace mxtrain {

std::string WhyNoBfloat16() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
      return "";
    default:
      return "it has no avx512_bf16";
  }
}

std::string onednn::WhyNotType(DType type) {
  if (type == DType::kFloat32) return "";
  if (type != DType::kBfloat16) return "float32 and bfloat16 only";
  const std::string why = WhyNoBfloat16();
  return why.empty() ? "" : format("bfloat16 on this processor: {}", why);
}

}  // namespace mxtrain
