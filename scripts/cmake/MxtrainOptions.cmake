# SPDX-License-Identifier: Apache-2.0
# Build options, compiler flags and required libraries.

option(MXTRAIN_WERROR "Warnings are errors" OFF)
option(MXTRAIN_COVERAGE "Instrument for gcov" OFF)
set(MXTRAIN_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=")
set(MXTRAIN_WITH_ONEDNN AUTO CACHE STRING "oneDNN kernels on the CPU: AUTO, ON or OFF")
set(MXTRAIN_WITH_ONNX AUTO CACHE STRING "Reading and writing ONNX files: AUTO, ON or OFF")
set(MXTRAIN_WITH_CURL AUTO CACHE STRING "Downloads of weights by libcurl, with checksums by libmd: AUTO, ON or OFF")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
  # Compiles in a third of the time of -O1, which the tests would not win back; with line numbers in sanitizer reports.
  set(CMAKE_CXX_FLAGS_SANITIZE "-O0 -g1 -fno-omit-frame-pointer")
  # Long runs are worth the compile time.
  set(CMAKE_CXX_FLAGS_FUZZ "-O1 -g1 -fno-omit-frame-pointer")
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()
# For all targets of this folder and below.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Share the compiler cache between clones: paths below this folder are relative, and the name of the build folder is ignored.
find_program(MXTRAIN_CCACHE ccache)
set(MXTRAIN_COMPILER_LAUNCHER "")
if(MXTRAIN_CCACHE)
  set(MXTRAIN_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${MXTRAIN_CCACHE})
endif()
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MXTRAIN_COMPILER_LAUNCHER})
endif()

# Flags of all our targets.
add_library(mxtrain_flags INTERFACE)
target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual $<$<BOOL:${MXTRAIN_WERROR}>:-Werror>>)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # The builds of AddressSanitizer: what Clang alone sees, the locks of base/mutex.h among it. Conversions and shadows are left to GCC, which
  # means less by them; GCC's pragmas for loops and what its library deprecates are not ours.
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas -Wno-deprecated-declarations
    -Werror=thread-safety -Wthread-safety-beta -Werror=thread-safety-beta>)
else()
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow -Wconversion>)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A source that is compiled with others is no header, whose types should not contain those of anonymous namespaces, and its locals may be
  # named like a constant of another.
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage -Wno-shadow -Wshadow=local>)
endif()
if(MXTRAIN_SANITIZE)
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MXTRAIN_SANITIZE} -fno-sanitize-recover=all>)
  # These checks cost a fifth of the compile time; null pointers fault anyway, what a wild one reaches is AddressSanitizer's affair, and x86
  # allows misaligned accesses.
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,pointer-overflow>)
  target_link_options(mxtrain_flags INTERFACE -fsanitize=${MXTRAIN_SANITIZE})
  # Vector code for AVX-512, for AVX2 and for any x86-64. What lies between them is the same source, and takes a third of its compile time.
  target_compile_definitions(mxtrain_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
  if(MXTRAIN_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # What outlives its function's stack frame is not watched: every frame would be on the heap, a sixth of the time of tests.
    target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize-address-use-after-return=never>)
  endif()
endif()
if(MXTRAIN_COVERAGE)
  target_compile_options(mxtrain_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--coverage>)
  target_link_options(mxtrain_flags INTERFACE --coverage)
endif()

# What tests compare with is computed once: -O2 would compile it for half as long again. The library under test has all its flags. GCC fuses
# multiplications with additions only among the expensive optimizations; without, kernels that a test instantiates would round otherwise.
add_library(mxtrain_test_flags INTERFACE)
target_compile_options(mxtrain_test_flags INTERFACE $<$<CONFIG:Release>:-O1 -fexpensive-optimizations>)

# The least versions are those of Debian 12.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(OpenMP 4.5 REQUIRED COMPONENTS CXX)
find_package(fmt 9.1 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(LibDeflate REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(XxHash REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG 1.6 REQUIRED)
find_package(GIF 5.2 REQUIRED)
find_package(WebP REQUIRED)
find_package(TIFF 4.5 REQUIRED)
find_package(Stb REQUIRED)
find_package(pugixml 1.13 REQUIRED)
find_package(Pcre2 10.42 REQUIRED)
find_package(Utf8Proc 2.8 REQUIRED)
find_package(DejaVu REQUIRED)
find_package(OpenCVCore REQUIRED)
find_package(Highway REQUIRED)
if(MXTRAIN_BUILD_TESTS)
  find_package(TurboJPEG REQUIRED)
  find_package(ZLIB 1.2 REQUIRED)
endif()

set(MXTRAIN_HAVE_ONEDNN OFF)
if(NOT MXTRAIN_WITH_ONEDNN STREQUAL "OFF")
  find_package(OneDNN 2.6...<4 QUIET)
  if(OneDNN_FOUND)
    set(MXTRAIN_HAVE_ONEDNN ON)
  elseif(MXTRAIN_WITH_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "MXTRAIN_WITH_ONEDNN=ON, but no oneDNN 2.6 to 3.x was found; install libdnnl-dev")
  endif()
endif()
# libcurl's headers are enough: the program opens the library when a file is to be downloaded.
set(MXTRAIN_HAVE_CURL OFF)
if(NOT MXTRAIN_WITH_CURL STREQUAL "OFF")
  find_path(CURL_INCLUDE_DIR NAMES curl/curl.h)
  find_package(LibMd QUIET)
  set(CURL_HEADER_VERSION 0)
  if(CURL_INCLUDE_DIR AND EXISTS "${CURL_INCLUDE_DIR}/curl/curlver.h")
    file(STRINGS "${CURL_INCLUDE_DIR}/curl/curlver.h" curl_line REGEX "define LIBCURL_VERSION \"")
    string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" CURL_HEADER_VERSION "${curl_line}")
  endif()
  if(CURL_INCLUDE_DIR AND LibMd_FOUND AND CURL_HEADER_VERSION VERSION_GREATER_EQUAL 7.85)
    set(MXTRAIN_HAVE_CURL ON)
  elseif(MXTRAIN_WITH_CURL STREQUAL "ON")
    message(FATAL_ERROR "MXTRAIN_WITH_CURL=ON, but libcurl's headers of 7.85 or later (found: ${CURL_HEADER_VERSION}) or libmd were not found; install libcurl4-openssl-dev and libmd-dev")
  endif()
endif()
message(STATUS "mxtrain: downloads ${MXTRAIN_HAVE_CURL}")
message(STATUS "mxtrain: oneDNN ${MXTRAIN_HAVE_ONEDNN}, version '${OneDNN_VERSION}', build type ${CMAKE_BUILD_TYPE}")

set(MXTRAIN_HAVE_ONNX OFF)
if(NOT MXTRAIN_WITH_ONNX STREQUAL "OFF")
  find_package(OnnxProto QUIET)
  if(OnnxProto_FOUND)
    set(MXTRAIN_HAVE_ONNX ON)
  elseif(MXTRAIN_WITH_ONNX STREQUAL "ON")
    message(FATAL_ERROR "MXTRAIN_WITH_ONNX=ON, but the ONNX schema was not found; install libonnx-dev and libprotobuf-dev")
  endif()
endif()
message(STATUS "mxtrain: ONNX files ${MXTRAIN_HAVE_ONNX}")
include(MxtrainCuda)
include(MxtrainMpi)
