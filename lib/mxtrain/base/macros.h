#pragma once
// The three macros that every header may use. Preprocessor conditionals of the project live here and in few other listed places.

// Marks a function that device code may call too: it is compiled for host and device where a CUDA compiler reads it.
#if defined(__CUDACC__)
#define MXTRAIN_HD __host__ __device__
#else
#define MXTRAIN_HD
#endif

// Visible outside the shared library. Everything else is hidden.
#define MXTRAIN_API __attribute__((visibility("default")))
