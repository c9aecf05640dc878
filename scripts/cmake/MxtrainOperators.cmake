# SPDX-License-Identifier: Apache-2.0
# Operator folders (lib/mxtrain/operators/*, or those of a plug-in) hold sources with a MXTRAIN_OPERATOR(id, ...) each, and headers with a
# MXTRAIN_KERNELS(id, Device, ...): kernels written once for all devices. The build finds both. A missing function is a link error; there
# are no static initializers that a linker could drop. The commands of the program are found in the same way.

# The ids of all lines of FILE that begin with MACRO(id
function(mxtrain_marked_ids file macro var)
  file(STRINGS ${file} marks REGEX "^${macro}\\(")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  list(TRANSFORM marks REPLACE "^${macro}\\(([a-z0-9_]+).*" "\\1")
  set(${var} ${marks} PARENT_SCOPE)
endfunction()

# mxtrain_device_kernels(FOLDERS folder... DEVICE type INCLUDE header SUFFIX cc|cu DIRECTORY dir SOURCES var IDS var)
#
# Writes a source into DIRECTORY for every header of kernels, which instantiates them for the device TYPE, known by the header INCLUDE. IDS
# are those of the functions, for mxtrain_write_registrations. CMake compiles sources of CUDA together from 3.31 on; until then some headers
# share a source where CMAKE_UNITY_BUILD asks for it.
function(mxtrain_device_kernels)
  cmake_parse_arguments(ARG "" "DEVICE;INCLUDE;SUFFIX;DIRECTORY;SOURCES;IDS" "FOLDERS" ${ARGN})
  set(ids)
  foreach(folder IN LISTS ARG_FOLDERS)
    file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.h)
    foreach(header IN LISTS headers)
      mxtrain_marked_ids(${header} MXTRAIN_KERNELS marks)
      get_filename_component(stem ${header} NAME_WE)
      foreach(id IN LISTS marks)
        if(NOT stem STREQUAL id AND NOT stem STREQUAL "${id}_loops")
          message(FATAL_ERROR "${header}: MXTRAIN_KERNELS(${id}, ...) must be named after the file")
        endif()
        set(header_of_${id} ${header})
        if(MXTRAIN_TREE_HEADERS)  # of the tree itself: the same text in every clone
          cmake_path(RELATIVE_PATH header_of_${id} BASE_DIRECTORY ${MXTRAIN_TREE_HEADERS})
        endif()
        list(APPEND ids ${id})
      endforeach()
    endforeach()
  endforeach()
  list(LENGTH ids count)
  set(names)
  foreach(id IN LISTS ids)
    set(name ${id}_kernels)
    if(CMAKE_UNITY_BUILD AND ARG_SUFFIX STREQUAL cu)
      mxtrain_group_of(${id} COUNT ${count} MOST 6 group)
      set(name kernels_${group})
    endif()
    list(APPEND names ${name})
    string(APPEND includes_${name} "#include \"${header_of_${id}}\"\n")
    string(APPEND functions_${name} "MXTRAIN_OPERATOR(${id}_kernels, registry) { mxtrain_kernels_${id}<${ARG_DEVICE}>(registry); }\n")
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(sources)
  foreach(name IN LISTS names)
    set(file ${ARG_DIRECTORY}/${name}.${ARG_SUFFIX})
    file(CONFIGURE OUTPUT ${file} CONTENT "// Generated.
#include \"${ARG_INCLUDE}\"
#include \"mxtrain/operator/registry.h\"
${includes_${name}}
${functions_${name}}" @ONLY)
    list(APPEND sources ${file})
  endforeach()
  list(TRANSFORM ids APPEND _kernels)
  set(${ARG_SOURCES} ${sources} PARENT_SCOPE)
  set(${ARG_IDS} ${ids} PARENT_SCOPE)
endfunction()

# mxtrain_ids_of_sources(MACRO var source...): the ids that the sources mark with MACRO, each of which is the name of its file.
function(mxtrain_ids_of_sources macro var)
  set(ids)
  foreach(source IN LISTS ARGN)
    mxtrain_marked_ids(${source} ${macro} marks)
    get_filename_component(stem ${source} NAME_WE)
    foreach(id IN LISTS marks)
      if(NOT id STREQUAL stem)
        message(FATAL_ERROR "${source}: ${macro}(${id}, ...) must bear the file's name, ${stem}")
      endif()
    endforeach()
    list(APPEND ids ${marks})
  endforeach()
  set(${var} ${ids} PARENT_SCOPE)
endfunction()

# mxtrain_write_registrations(FILE file FUNCTION name [TYPE type HEADER header PREFIX prefix] IDS id...): a source that defines
# mxtrain::NAME(TYPE&), which calls PREFIX_ID of every id; without a TYPE those of operators. HEADER declares mxtrain::TYPE.
function(mxtrain_write_registrations)
  cmake_parse_arguments(ARG "" "FILE;FUNCTION;TYPE;HEADER;PREFIX" "IDS" ${ARGN})
  if(NOT ARG_TYPE)
    set(ARG_TYPE OperatorRegistry)
    set(ARG_HEADER mxtrain/operator/registry.h)
    set(ARG_PREFIX mxtrain_register)
  endif()
  set(declarations "")
  set(calls "")
  foreach(id IN LISTS ARG_IDS)
    string(APPEND declarations "extern \"C\" void ${ARG_PREFIX}_${id}(::mxtrain::${ARG_TYPE}&);\n")
    string(APPEND calls "  ::${ARG_PREFIX}_${id}(registry);\n")
  endforeach()
  file(CONFIGURE OUTPUT ${ARG_FILE} CONTENT
"// Generated: one call per file.
#include \"${ARG_HEADER}\"
${declarations}
namespace mxtrain {
void ${ARG_FUNCTION}([[maybe_unused]] ${ARG_TYPE}& registry) {
${calls}}
}  // namespace mxtrain
" @ONLY)
endfunction()

# mxtrain_collect_operators([CUDA] FOLDERS folder... SOURCES var [TESTS var] REGISTRATIONS file FUNCTION name)
#
# The sources of operator folders and those generated for their kernels: those of the GPU, *_cuda.cu, *_cuda.cc and *_cudnn.cc, with CUDA, and
# all others without. Writes FILE, whose FUNCTION registers them all.
function(mxtrain_collect_operators)
  cmake_parse_arguments(ARG "CUDA" "SOURCES;TESTS;REGISTRATIONS;FUNCTION" "FOLDERS" ${ARGN})
  set(sources)
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
  get_filename_component(directory ${ARG_REGISTRATIONS} DIRECTORY)
  get_filename_component(name ${ARG_REGISTRATIONS} NAME_WE)
  if(ARG_CUDA)
    list(FILTER sources INCLUDE REGEX "${of_gpu}")
    set(device DEVICE mxtrain::OnGpu INCLUDE mxtrain/operator/device_code.cuh SUFFIX cu)
  else()
    list(FILTER sources EXCLUDE REGEX "${of_gpu}")
    set(device DEVICE mxtrain::OnCpu INCLUDE mxtrain/operator/kernel.h SUFFIX cc)
  endif()
  if(NOT MXTRAIN_HAVE_ONEDNN)
    list(FILTER sources EXCLUDE REGEX "_onednn\\.cc$")
  endif()
  mxtrain_ids_of_sources(MXTRAIN_OPERATOR ids ${sources})
  mxtrain_device_kernels(${device} FOLDERS ${ARG_FOLDERS} DIRECTORY ${directory}/${name}_kernels SOURCES kernel_sources IDS kernel_ids)
  mxtrain_write_registrations(FILE ${ARG_REGISTRATIONS} FUNCTION ${ARG_FUNCTION} IDS ${ids} ${kernel_ids})
  set(${ARG_SOURCES} ${sources} ${kernel_sources} PARENT_SCOPE)
  if(ARG_TESTS)
    set(${ARG_TESTS} ${tests} PARENT_SCOPE)
  endif()
endfunction()
