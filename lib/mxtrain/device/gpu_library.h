#pragma once
// The GPU half: backend and kernels of CUDA in a shared object of its own, libmxtrain_cuda.so, which lies beside this library where there
// is one. It is opened when a GPU is asked for, so that the rest runs without CUDA's libraries and does not pay for loading them.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

struct GpuLibrary {
  void* handle = nullptr;  // of dlopen, never closed; null: absent
  std::string path;        // "" when there is no such file
  std::string why_absent;  // "" when it is open, else a sentence that says how to get it
};

// "" where there is none.
MXTRAIN_API std::string GpuLibraryPath();

// Whether NVIDIA's driver (libcuda.so.1) is on this machine: without it the GPU half can be opened, and sees no GPU.
MXTRAIN_API bool HasGpuDriver();

// Opens it, or says why not. The libraries that it needs (cuBLAS, cuDNN) are looked for where the system's loader looks; in the folders of
// MXTRAIN_CUDA_PATH, separated by colons; in CUDA's own folders; and where Python's packages nvidia-* keep theirs. Every call does all of
// it; after the first success that costs next to nothing.
MXTRAIN_API GpuLibrary OpenGpuLibrary();

// Opens a library that the GPU half uses where it is there ("libnccl.so.2"), looked for in the same places; null: it is in none of them. It
// stays open.
MXTRAIN_API void* OpenCudaLibrary(const std::string& name);

}  // namespace mxtrain
