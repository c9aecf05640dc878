#pragma once
// The macros that every header may use. Preprocessor conditionals of the project live here and in few other listed places.

// Marks a function that device code may call too: it is compiled for host and device where a CUDA compiler reads it.
#if defined(__CUDACC__)
#define MXTRAIN_HD __host__ __device__
#else
#define MXTRAIN_HD
#endif

// Statements of a MXTRAIN_HD function that the device alone runs, such as an instruction of its own; they end in a return.
#if defined(__CUDA_ARCH__)
#define MXTRAIN_ON_DEVICE(...) __VA_ARGS__
#else
#define MXTRAIN_ON_DEVICE(...)
#endif

// Visible outside the shared library. Everything else is hidden.
#define MXTRAIN_API __attribute__((visibility("default")))

// A loop that is compiled for AVX-512, AVX2 and plain x86-64; the machine chooses once, when the program starts. What it calls must be inlined
// into it. The choice runs before a sanitizer is set up, so sanitized builds have the plain form alone.
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MXTRAIN_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MXTRAIN_SIMD
#endif
