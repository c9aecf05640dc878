// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of PyTorch's files (.pth, .pt), read without running anything: a pickle is a program for
// Python, which is read as data (internal/pickle.h): of what it would call, only the few functions
// that describe tensors mean something here. Both forms that torch.save writes:
//
//   zip archive (since 1.6): PREFIX/data.pkl | PREFIX/data/KEY, the bytes of a storage | ...
//   stream (before): magic number | protocol | system | object | keys of storages, a pickle each,
//   and
//                    then for each storage: i64 number of elements | elements
//
// The object is a dict from names to tensors, or a checkpoint that holds such a state dict under
// state_dict, model, model_state_dict, ema, model_ema, state_dict_ema, net, module or params; these
// are tried in this order, and the outer dict after them. Without any of these, the only dict with
// tensors is read, below whatever keys. Other values are skipped, objects of any class among them:
// the arguments of a command line, numbers of NumPy, dates.
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Whether a file that begins so (512 bytes suffice) is for DeserializeTorchFile.
MXTRAIN_API bool IsTorchFile(std::string_view begin);

// Which of a file's state dicts was read.
struct TorchStates {
  std::string taken;  // the keys that lead to it, "model.state_dict"; "": the outermost
  std::vector<std::string> others;  // with mostly the same names, such as averages of the weights
};

// Plain arrays on the CPU, in the order of their names; strided tensors become contiguous, those of
// int8 and int16 int32, and those of bool uint8. `state`: the keys that lead to the state dict; "":
// the usual one. Throws kData before any array is created for: a damaged file; a state dict that is
// not there, or none of several that is usual; in it tensors outside their storages, or together
// much larger than the file, and those of other element types or kinds; a module that was saved as
// a whole, and other objects in place of a dict; TorchScript; and the tar files of PyTorch before
// 0.1.10.
MXTRAIN_API NamedArrays DeserializeTorchFile(Runtime& runtime, std::string_view bytes,
                                             const std::string& file_name,
                                             const std::string& state = "",
                                             TorchStates* states = nullptr);

}  // namespace mxtrain
