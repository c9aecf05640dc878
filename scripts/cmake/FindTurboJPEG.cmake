# SPDX-License-Identifier: Apache-2.0
# Finds libturbojpeg0-dev and defines TurboJPEG::TurboJPEG.
find_path(TurboJPEG_INCLUDE_DIR NAMES turbojpeg.h )
find_library(TurboJPEG_LIBRARY NAMES turbojpeg)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TurboJPEG REQUIRED_VARS TurboJPEG_INCLUDE_DIR TurboJPEG_LIBRARY
  REASON_FAILURE_MESSAGE "install libturbojpeg0-dev (scripts/install_deps.sh does)")
if(TurboJPEG_FOUND AND NOT TARGET TurboJPEG::TurboJPEG)
  add_library(TurboJPEG::TurboJPEG UNKNOWN IMPORTED)
  set_target_properties(TurboJPEG::TurboJPEG PROPERTIES IMPORTED_LOCATION "${TurboJPEG_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${TurboJPEG_INCLUDE_DIR}")
endif()
