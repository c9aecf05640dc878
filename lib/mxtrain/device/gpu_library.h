// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA backend: backend and kernels for CUDA in a separate shared object, libmxtrain_cuda.so,
// next to this library if installed. It is loaded when a GPU is requested, so everything else runs
// without CUDA's libraries and does not pay for loading them.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

struct GpuLibrary {
  void* handle = nullptr;  // of dlopen, never closed; null: absent
  std::string path;        // "" if there is no such file
  std::string why_absent;  // "" if it is open, else a sentence that says how to get it
};

// "" if there is none.
MXTRAIN_API std::string GpuLibraryPath();

// Whether NVIDIA's driver (libcuda.so.1) is installed: without it the CUDA backend can be loaded
// but sees no GPU.
MXTRAIN_API bool HasGpuDriver();

// Loads it, or says why not. Its dependencies (cuBLAS, cuDNN) are searched where the system's
// loader looks; in the folders of MXTRAIN_CUDA_PATH, separated by colons; in CUDA's own folders;
// and in Python's nvidia-* packages. Every call repeats all of this; after the first success it
// costs almost nothing.
MXTRAIN_API GpuLibrary OpenGpuLibrary();

// Loads an optional library of the CUDA backend ("libnccl.so.2"), searched in the same places;
// null: not found. It stays loaded.
MXTRAIN_API void* OpenCudaLibrary(const std::string& name);

}  // namespace mxtrain
