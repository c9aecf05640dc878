// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX files. Built on the protobuf schema of libonnx-dev; a build without it answers with kUsage
// (MXTRAIN_WITH_ONNX).
#include <string>
#include <string_view>

#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// Whether this build reads and writes ONNX files.
MXTRAIN_API bool HasOnnxFiles();

// The bytes of the file. Throws kUsage for more than protobuf's 2 GiB, kData for names that are
// not UTF-8.
MXTRAIN_API std::string WriteModel(Model model);

// Reads the file without running, checking or completing anything of it. Arrays may lie in other
// files of its folder (external data), never outside: names with "..", absolute names, and links
// that lead out are refused. Throws kData for what is not a whole ONNX model or contradicts itself,
// for graphs of more than a million nodes, for files of so many small parts that reading them would
// take more than 512 MiB and sixteen times the file's bytes, and for parts that this program does
// not read (quantization, functions, sparse arrays); kFileSystem as ReadFile.
MXTRAIN_API Model ReadModel(const std::string& path);
// The same for bytes in memory; `name` is for errors, `folder` holds the external data ("": none is
// allowed).
MXTRAIN_API Model ParseModel(std::string_view bytes, const std::string& name,
                             const std::string& folder = "");

}  // namespace mxtrain::onnx
