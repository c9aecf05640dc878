// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much memory a parser would need for an ONNX model, found without parsing it: two bytes of a
// file may be an empty node, for which protobuf makes an object of some hundred bytes. Private to
// onnx.
#include <cstdint>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain::onnx {

// An estimate from above of the memory that the messages, texts and numbers of a ModelProto take,
// in protobuf's objects and in a Model. Stops where the bytes are no message any more, which a
// parser then refuses.
MXTRAIN_API int64_t EstimateParsedBytes(std::string_view model);

// Throws kData, with the name of the file, for more than 512 MiB and sixteen times the file's own
// bytes.
MXTRAIN_API void CheckParsedBytes(std::string_view model, const std::string& name);

}  // namespace mxtrain::onnx
