// SPDX-License-Identifier: Apache-2.0
#pragma once
// Macros that every header may use. The project's preprocessor conditionals are here and in a few
// other listed places.

// Marks a function that device code may also call: compiled for host and device by a CUDA compiler.
#if defined(__CUDACC__)
#define MXTRAIN_HD __host__ __device__
#else
#define MXTRAIN_HD
#endif

// Statements of an MXTRAIN_HD function that run only on the device, such as device intrinsics; they
// end in a return.
#if defined(__CUDA_ARCH__)
#define MXTRAIN_ON_DEVICE(...) __VA_ARGS__
#else
#define MXTRAIN_ON_DEVICE(...)
#endif

// Visible outside the shared library. All other symbols are hidden.
#define MXTRAIN_API __attribute__((visibility("default")))

// Attributes that only Clang has, such as those of its thread safety analysis (base/mutex.h).
#if defined(__clang__)
#define MXTRAIN_CLANG_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define MXTRAIN_CLANG_ATTRIBUTE(...)
#endif

// A loop compiled for AVX-512, AVX2 and plain x86-64; the variant is chosen once at program start.
// Callees must be inlined into it. Only the plain variant: sanitized builds, since the choice runs
// before a sanitizer is initialized, and clang, which has no variants of templates.
#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define MXTRAIN_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MXTRAIN_SIMD
#endif
