# SPDX-License-Identifier: Apache-2.0
# mxtrain_collect_operators([CUDA] FOLDERS folder... SOURCES var REGISTRATIONS file FUNCTION name)
#
# Scans operator folders (lib/mxtrain/operators/*, or those of a plug-in) for their sources and writes FILE, a source that defines
# FUNCTION(OperatorRegistry&), which calls mxtrain_register_<file name>() of every source that holds a MXTRAIN_OPERATOR(...): those of the GPU,
# *_cuda.cu, *_cuda.cc and *_cudnn.cc, with CUDA, and all others without. A missing function is a link error; there
# are no static initializers that a linker could drop.
function(mxtrain_collect_operators)
  cmake_parse_arguments(ARG "CUDA" "SOURCES;TESTS;REGISTRATIONS;FUNCTION" "FOLDERS" ${ARGN})
  set(sources)
  set(tests)
  foreach(folder IN LISTS ARG_FOLDERS)
    file(GLOB found CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/*.cu)
    list(APPEND sources ${found})
  endforeach()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cu$" AND NOT source MATCHES "_cuda\\.cu$")
      message(FATAL_ERROR "${source}: device code stands in files named *_cuda.cu")
    endif()
  endforeach()
  set(of_gpu "_cuda\\.cu$|_cuda\\.cc$|_cudnn\\.cc$")
  if(ARG_CUDA)
    list(FILTER sources INCLUDE REGEX "${of_gpu}")
  else()
    list(FILTER sources EXCLUDE REGEX "${of_gpu}")
  endif()
  if(NOT MXTRAIN_HAVE_ONEDNN)
    list(FILTER sources EXCLUDE REGEX "_onednn\\.cc$")
  endif()
  set(declarations "")
  set(calls "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} marks REGEX "^MXTRAIN_OPERATOR\\(")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    foreach(mark IN LISTS marks)
      string(REGEX REPLACE "^MXTRAIN_OPERATOR\\(([a-z0-9_]+).*" "\\1" id "${mark}")
      get_filename_component(stem ${source} NAME_WE)
      if(NOT id STREQUAL stem)
        message(FATAL_ERROR "${source}: MXTRAIN_OPERATOR(${id}, ...) must bear the file's name, ${stem}")
      endif()
      string(APPEND declarations "extern \"C\" void mxtrain_register_${id}(::mxtrain::OperatorRegistry&);\n")
      string(APPEND calls "  mxtrain_register_${id}(registry);\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${ARG_REGISTRATIONS} CONTENT
"// Generated from the operator folders: one call per file.
#include \"mxtrain/operator/registry.h\"
${declarations}
namespace mxtrain {
void ${ARG_FUNCTION}([[maybe_unused]] OperatorRegistry& registry) {
${calls}}
}  // namespace mxtrain
" @ONLY)
  set(${ARG_SOURCES} ${sources} PARENT_SCOPE)
  if(ARG_TESTS)
    set(${ARG_TESTS} ${tests} PARENT_SCOPE)
  endif()
endfunction()
