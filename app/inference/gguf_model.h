// SPDX-License-Identifier: Apache-2.0
#pragma once
// A language model as llama.cpp reads it from a GGUF file: nets built like Llama or GPT-2, with a
// tokenizer of byte-level BPE that splits as GPT-2's or SmolLM's.
#include <string>

#include "mxtrain/base/dtype.h"
#include "mxtrain/ndarray/gguf.h"
#include "mxtrain/train/model.h"

namespace mxtrain::inference {

// `type`: of matrices; vectors and positions stay float32. `tokenizer`: Tokenizer::ToText. Throws
// kUsage, with the reason, for a net or a tokenizer that llama.cpp has no equivalent of.
GgufWriter GgufOf(const Model& model, const std::string& tokenizer, DType type);

}  // namespace mxtrain::inference
