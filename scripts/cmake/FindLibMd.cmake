# SPDX-License-Identifier: Apache-2.0
# Finds libmd-dev, the message digests of the BSD systems, and defines LibMd::LibMd.
find_path(LibMd_INCLUDE_DIR NAMES sha2.h)
find_library(LibMd_LIBRARY NAMES md)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibMd REQUIRED_VARS LibMd_INCLUDE_DIR LibMd_LIBRARY
  REASON_FAILURE_MESSAGE "install libmd-dev (scripts/install_deps.sh does)")
if(LibMd_FOUND AND NOT TARGET LibMd::LibMd)
  add_library(LibMd::LibMd UNKNOWN IMPORTED)
  set_target_properties(LibMd::LibMd PROPERTIES IMPORTED_LOCATION "${LibMd_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibMd_INCLUDE_DIR}")
endif()
