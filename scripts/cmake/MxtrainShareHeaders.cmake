# SPDX-License-Identifier: Apache-2.0
# Sources share the work of their headers, in two ways:
# - Several of a target are compiled as one (CMAKE_UNITY_BUILD, in all presets but dev), which halves the time of a build. Names of one
#   target must therefore differ, in anonymous namespaces too; a compiler finds where they do not. Which are compiled together follows from
#   their names, so that a new source moves none of the others.
# - MXTRAIN_PRECOMPILE=ON, in the sanitizer presets, whose builds mostly parse, precompiles those of the standard library.
# The preset dev and `scripts/nightly.sh includes` compile each file by itself, which shows that it includes what it uses.
#
# mxtrain_share_headers(target...): GCC uses a precompiled header only where flags are the same as those it was made with: kinds are code of
# a program (-fPIE), of a library (-fPIC), and of a library with OpenMP. A target with further flags of its own gets a header of its own:
# mxtrain_share_headers(OWN target). Files that include Highway stay apart: it includes them again for each set of instructions, and
# intrinsics under one `#pragma GCC target` after another, which GCC 12 compiles wrongly after a precompiled header.
option(MXTRAIN_PRECOMPILE "Use precompiled headers" OFF)

set(mxtrain_precompiled <algorithm> <atomic> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <random> <set> <span>
  <string> <thread> <vector> <fmt/format.h> <fmt/ranges.h>)
set(mxtrain_precompiled_source ${CMAKE_CURRENT_LIST_DIR}/precompile.cc)

# mxtrain_group_of(name COUNT count MOST most var): the number of the group of NAME, one of COUNT names that are spread over groups of MOST
# at most on average. The number of groups is a power of two: it changes only where COUNT doubles.
function(mxtrain_group_of name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "COUNT;MOST" "")
  set(groups 1)
  math(EXPR capacity ${ARG_MOST})
  while(capacity LESS ARG_COUNT)
    math(EXPR groups "${groups} * 2")
    math(EXPR capacity "${capacity} * 2")
  endwhile()
  string(MD5 hash "${name}")
  string(SUBSTRING ${hash} 0 6 hash)
  math(EXPR group "0x${hash} % ${groups}")
  set(${ARG_UNPARSED_ARGUMENTS} ${group} PARENT_SCOPE)
endfunction()

function(mxtrain_share_headers)
  cmake_parse_arguments(ARG "OWN" "" "" ${ARGN})
  foreach(target IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cc$")
    list(LENGTH sources count)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    foreach(source IN LISTS sources)
      get_filename_component(name ${source} NAME)
      mxtrain_group_of(${name} COUNT ${count} MOST 16 group)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
      get_filename_component(source ${source} ABSOLUTE)
      if(EXISTS ${source})
        file(STRINGS ${source} highway LIMIT_COUNT 1 REGEX "#include <hwy/|#include \"hwy/")
        if(highway)
          set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
            SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
        endif()
      endif()
    endforeach()
    if(NOT MXTRAIN_PRECOMPILE)
      continue()
    endif()
    if(ARG_OWN)
      target_precompile_headers(${target} PRIVATE ${mxtrain_precompiled})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    get_target_property(links ${target} LINK_LIBRARIES)
    set(kind library)
    if(type STREQUAL EXECUTABLE)
      if(links MATCHES OpenMP)
        continue()
      endif()
      set(kind program)
    elseif(links MATCHES OpenMP)
      set(kind openmp)
    endif()
    set(owner mxtrain_precompiled_${kind})
    if(NOT TARGET ${owner})
      if(kind STREQUAL program)
        add_executable(${owner} EXCLUDE_FROM_ALL ${mxtrain_precompiled_source})
      else()
        add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${mxtrain_precompiled_source})
      endif()
      target_link_libraries(${owner} PRIVATE mxtrain_flags fmt::fmt Threads::Threads)
      if(kind STREQUAL openmp)
        target_link_libraries(${owner} PRIVATE OpenMP::OpenMP_CXX)
      endif()
      target_precompile_headers(${owner} PRIVATE ${mxtrain_precompiled})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endforeach()
endfunction()
