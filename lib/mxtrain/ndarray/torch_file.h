// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of PyTorch's files (.pth, .pt), read without running anything: a pickle is a program for
// Python, of which only the few instructions that describe tensors are interpreted
// (internal/pickle.h). Both forms that torch.save writes:
//
//   zip archive (since 1.6): PREFIX/data.pkl | PREFIX/data/KEY, the bytes of a storage | ...
//   stream (before): magic number | protocol | system | object | keys of storages, a pickle each,
//   and
//                    then for each storage: i64 number of elements | elements
//
// The object is a dict from names to tensors, or a checkpoint that holds one under state_dict,
// model, model_state_dict, ema, model_ema, state_dict_ema, net, module or params; these are tried
// in this order, and the outer dict after them. Its other values are skipped.
#include <string>
#include <string_view>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Whether a file that begins so (512 bytes suffice) is for DeserializeTorchFile.
MXTRAIN_API bool IsTorchFile(std::string_view begin);

// Plain arrays on the CPU, in the order of their names; strided tensors become contiguous, those of
// int8 and int16 int32, and those of bool uint8. Throws kData before any array is created for: a
// damaged file; tensors outside their storages, or together much larger than the file; other
// element types; names of Python that are not tensors', such as those of a module that was saved as
// a whole; TorchScript; and the tar files of PyTorch before 0.1.10.
MXTRAIN_API NamedArrays DeserializeTorchFile(Runtime& runtime, std::string_view bytes,
                                             const std::string& file_name);

}  // namespace mxtrain
