#pragma once
// Whether this machine computes in bfloat16 faster than in float32.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// "" when oneDNN has kernels that multiply bfloat16 by the processor's own instructions (avx512_bf16, amx_bf16), else the reason, as the
// end of a sentence. ONEDNN_MAX_CPU_ISA counts.
MXTRAIN_API std::string WhyNoBfloat16();

}  // namespace mxtrain
