# SPDX-License-Identifier: Apache-2.0
# mxtrain_add_plugin(target folder...)
#
# Builds operator folders (laid out as those of lib/mxtrain/operators) into a shared object that `mxtrain --plugin` and
# OperatorRegistry::LoadPlugin open. The list of registrations and the two entry points are generated. Works in the tree and, after
# find_package(mxtrain), outside of it. Files named *_test.cc are left to the caller. If the project has the language CUDA, kernels for GPUs,
# *_cuda.cu, are part of it, with CUDA's runtime in it: it loads on machines without a GPU too. They may use operator/mxnet_kernel.cuh.
include(${CMAKE_CURRENT_LIST_DIR}/MxtrainOperators.cmake)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()

# Writes FILE, the two functions that the loader looks for, around RegisterPluginOperators.
function(mxtrain_write_plugin_entry target file)
  set(version ${mxtrain_VERSION})
  set(declare_device "")
  set(register_device "")
  if(ARGN)  # the plug-in has device code of its own
    set(declare_device "void RegisterDeviceCode(OperatorRegistry& registry);\n")
    set(register_device "  mxtrain::RegisterDeviceCode(registry);\n")
  endif()
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Generated: what the loader of plug-ins looks for.
#include \"mxtrain/operator/registry.h\"
namespace mxtrain {
void RegisterPluginOperators(OperatorRegistry& registry);
${declare_device}}
extern \"C\" MXTRAIN_API const mxtrain::PluginInfo* mxtrain_plugin_info() {
  static const mxtrain::PluginInfo info = {mxtrain::kPluginAbi, \"${target}\", \"${version}\"};
  return &info;
}
extern \"C\" MXTRAIN_API void mxtrain_plugin_register(mxtrain::OperatorRegistry& registry) {
  mxtrain::RegisterPluginOperators(registry);
${register_device}}
" @ONLY)
endfunction()

function(mxtrain_add_plugin target)
  set(folders)
  foreach(folder IN LISTS ARGN)
    get_filename_component(absolute ${folder} ABSOLUTE)
    if(NOT IS_DIRECTORY ${absolute})
      message(FATAL_ERROR "mxtrain_add_plugin(${target}): ${absolute} is not a folder")
    endif()
    list(APPEND folders ${absolute})
  endforeach()
  mxtrain_collect_operators(FOLDERS ${folders} SOURCES sources
    REGISTRATIONS ${CMAKE_CURRENT_BINARY_DIR}/${target}_registrations.cc FUNCTION RegisterPluginOperators)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(device_code)
  foreach(folder IN LISTS folders)
    file(GLOB found CONFIGURE_DEPENDS ${folder}/*_cuda.cu)
    list(APPEND device_code ${found})
  endforeach()
  if(device_code AND "CUDA" IN_LIST languages)
    set(ids)
    foreach(source IN LISTS device_code)
      mxtrain_marked_ids(${source} MXTRAIN_OPERATOR marks)
      list(APPEND ids ${marks})
    endforeach()
    mxtrain_write_registrations(FILE ${CMAKE_CURRENT_BINARY_DIR}/${target}_cuda_registrations.cc FUNCTION RegisterDeviceCode IDS ${ids})
    list(APPEND sources ${device_code} ${CMAKE_CURRENT_BINARY_DIR}/${target}_cuda_registrations.cc)
  else()
    set(device_code)
  endif()
  mxtrain_write_plugin_entry(${target} ${CMAKE_CURRENT_BINARY_DIR}/${target}_entry.cc ${device_code})
  add_library(${target} MODULE ${sources} ${CMAKE_CURRENT_BINARY_DIR}/${target}_registrations.cc
    ${CMAKE_CURRENT_BINARY_DIR}/${target}_entry.cc)
  set_target_properties(${target} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:>,$<COMPILE_LANGUAGE:CXX>>:-O2>)  # without CMAKE_BUILD_TYPE kernels would not be optimized
  target_link_libraries(${target} PRIVATE mxtrain::mxtrain)
  if(device_code)
    # fmt 9 wrongly assumes that nvcc lacks constexpr functions.
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Static CUDA_VISIBILITY_PRESET hidden LINKER_LANGUAGE CXX)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr --extended-lambda -DFMT_USE_CONSTEXPR=1>)
    find_package(CUDAToolkit REQUIRED)
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
endfunction()
