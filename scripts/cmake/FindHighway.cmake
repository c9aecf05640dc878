# SPDX-License-Identifier: Apache-2.0
# Finds libhwy-dev and defines Highway::Highway.
find_path(Highway_INCLUDE_DIR NAMES hwy/highway.h )
find_library(Highway_LIBRARY NAMES hwy)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Highway REQUIRED_VARS Highway_INCLUDE_DIR Highway_LIBRARY
  REASON_FAILURE_MESSAGE "install libhwy-dev (scripts/install_deps.sh does)")
if(Highway_FOUND AND NOT TARGET Highway::Highway)
  add_library(Highway::Highway UNKNOWN IMPORTED)
  set_target_properties(Highway::Highway PROPERTIES IMPORTED_LOCATION "${Highway_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Highway_INCLUDE_DIR}")
endif()
