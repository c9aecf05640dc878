# SPDX-License-Identifier: Apache-2.0
# Finds libdeflate-dev and defines LibDeflate::LibDeflate.
find_path(LibDeflate_INCLUDE_DIR NAMES libdeflate.h )
find_library(LibDeflate_LIBRARY NAMES deflate)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibDeflate REQUIRED_VARS LibDeflate_INCLUDE_DIR LibDeflate_LIBRARY
  REASON_FAILURE_MESSAGE "install libdeflate-dev (scripts/install_deps.sh does)")
if(LibDeflate_FOUND AND NOT TARGET LibDeflate::LibDeflate)
  add_library(LibDeflate::LibDeflate UNKNOWN IMPORTED)
  set_target_properties(LibDeflate::LibDeflate PROPERTIES IMPORTED_LOCATION "${LibDeflate_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibDeflate_INCLUDE_DIR}")
endif()
