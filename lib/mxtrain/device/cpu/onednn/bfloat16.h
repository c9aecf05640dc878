// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this machine computes in bfloat16 faster than in float32.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// "" if oneDNN has kernels that use the processor's bfloat16 instructions (avx512_bf16, amx_bf16),
// else the reason, as the end of a sentence. Respects ONEDNN_MAX_CPU_ISA.
MXTRAIN_API std::string WhyNoBfloat16();

}  // namespace mxtrain
