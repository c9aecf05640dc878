# SPDX-License-Identifier: Apache-2.0
# Finds libutf8proc-dev and defines Utf8Proc::Utf8Proc.
find_path(Utf8Proc_INCLUDE_DIR NAMES utf8proc.h)
find_library(Utf8Proc_LIBRARY NAMES utf8proc)
if(Utf8Proc_INCLUDE_DIR)
  file(STRINGS "${Utf8Proc_INCLUDE_DIR}/utf8proc.h" utf8proc_lines REGEX "define UTF8PROC_VERSION_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*VERSION_MAJOR +([0-9]+).*VERSION_MINOR +([0-9]+).*" "\\1.\\2" Utf8Proc_VERSION "${utf8proc_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Utf8Proc REQUIRED_VARS Utf8Proc_INCLUDE_DIR Utf8Proc_LIBRARY VERSION_VAR Utf8Proc_VERSION
  REASON_FAILURE_MESSAGE "install libutf8proc-dev (scripts/install_deps.sh does)")
if(Utf8Proc_FOUND AND NOT TARGET Utf8Proc::Utf8Proc)
  add_library(Utf8Proc::Utf8Proc UNKNOWN IMPORTED)
  set_target_properties(Utf8Proc::Utf8Proc PROPERTIES IMPORTED_LOCATION "${Utf8Proc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Utf8Proc_INCLUDE_DIR}")
endif()
