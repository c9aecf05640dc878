# SPDX-License-Identifier: Apache-2.0
# CUDA: finds the toolkit, cuBLAS and cuDNN 9 if MXTRAIN_WITH_CUDA allows it, and sets MXTRAIN_HAVE_CUDA. The target mxtrain_cuda_flags
# has the flags for device code. Only the CUDA backend, a separate shared object, uses them.
set(MXTRAIN_WITH_CUDA OFF CACHE STRING "CUDA backend: AUTO, ON or OFF")
set(MXTRAIN_HAVE_CUDA OFF)

if(NOT MXTRAIN_WITH_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(MXTRAIN_NVCC nvcc HINTS /usr/local/cuda/bin)
    if(MXTRAIN_NVCC)
      set(CMAKE_CUDA_COMPILER ${MXTRAIN_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    find_package(CUDAToolkit 12 QUIET)
    find_package(CuDNN 9 QUIET)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})  # the library itself is opened at run time
    mark_as_advanced(NCCL_INCLUDE_DIR)
  endif()
  if(CUDAToolkit_FOUND AND CuDNN_FOUND)
    set(MXTRAIN_HAVE_CUDA ON)
  elseif(MXTRAIN_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MXTRAIN_WITH_CUDA=ON, but nvcc 12 or later, cuBLAS and cuDNN 9 are not all there; nvcc: '${CMAKE_CUDA_COMPILER}', "
      "toolkit: '${CUDAToolkit_VERSION}', cuDNN: '${CuDNN_VERSION}'")
  endif()
endif()

if(MXTRAIN_HAVE_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90")  # the last with PTX, for what comes after it
  endif()
  if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${MXTRAIN_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_FLAGS_RELEASE "-O2 -DNDEBUG")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    string(APPEND CMAKE_CUDA_FLAGS_RELEASE " --compress-mode=size")
  endif()
  add_library(mxtrain_cuda_flags INTERFACE)
  # Constant functions of the C++ library (std::bit_cast, std::min) and lambdas marked MXTRAIN_HD are allowed in device code. fmt 9
  # wrongly assumes that nvcc lacks constexpr functions. nvcc puts parentheses around declarations of pointers to members.
  target_compile_options(mxtrain_cuda_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --extended-lambda -DFMT_USE_CONSTEXPR=1 -Xcompiler=-Wall,-Wextra,-Wno-parentheses>)
endif()
message(STATUS "mxtrain: CUDA ${MXTRAIN_HAVE_CUDA}, toolkit '${CUDAToolkit_VERSION}', cuDNN '${CuDNN_VERSION}', NCCL's header '${NCCL_INCLUDE_DIR}', for ${CMAKE_CUDA_ARCHITECTURES}")
