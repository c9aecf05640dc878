# SPDX-License-Identifier: Apache-2.0
# The version of a build. A release is a commit with the tag v<version of project()>: its builds are "0.1.0". Those of other commits
# say which: "0.1.0+12.g3245611" (12 commits after the tag), "0.1.0+g3245611" without any tag, with ".dirty" for changed files.
# Sources without git are a release.
#
# Included by a project, mxtrain_version(target) adds a source with `const char* MxtrainVersion()` to the target; it is written at build
# time, and only if the version has changed. Run as a script (cmake -P), this file writes that source.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(mxtrain_version_script ${CMAKE_CURRENT_LIST_FILE})
  function(mxtrain_version target)
    find_package(Git QUIET)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/version.cc)
    add_custom_target(${target}_version BYPRODUCTS ${source} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DVERSION=${PROJECT_VERSION} -DGIT=${GIT_EXECUTABLE} -DFOLDER=${PROJECT_SOURCE_DIR} -DOUTPUT=${source}
        -P ${mxtrain_version_script})
    set_source_files_properties(${source} PROPERTIES GENERATED ON)
    target_sources(${target} PRIVATE ${source})
    add_dependencies(${target} ${target}_version)
  endfunction()
  return()
endif()

set(version ${VERSION})
if(GIT AND EXISTS ${FOLDER}/.git)
  execute_process(COMMAND ${GIT} describe --tags --long --always --dirty=.dirty --abbrev=7 --match "v${VERSION}"
    WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(described MATCHES "^v.*-([0-9]+)-(g[0-9a-f]+)(\\.dirty)?$")
    if(NOT CMAKE_MATCH_1 EQUAL 0 OR CMAKE_MATCH_3)
      set(version ${VERSION}+${CMAKE_MATCH_1}.${CMAKE_MATCH_2}${CMAKE_MATCH_3})
    endif()
  elseif(described)
    set(version ${VERSION}+g${described})
  endif()
endif()
set(text "// Written by the build.\nconst char* MxtrainVersion() {\n  return \"${version}\";\n}\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
