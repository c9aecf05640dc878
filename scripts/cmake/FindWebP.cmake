# SPDX-License-Identifier: Apache-2.0
# Finds libwebp-dev and defines WebP::webp and WebP::demux.
find_path(WebP_INCLUDE_DIR NAMES webp/demux.h)
find_library(WebP_LIBRARY NAMES webp)
find_library(WebP_DEMUX_LIBRARY NAMES webpdemux)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP REQUIRED_VARS WebP_INCLUDE_DIR WebP_LIBRARY WebP_DEMUX_LIBRARY
  REASON_FAILURE_MESSAGE "install libwebp-dev (scripts/install_deps.sh does)")
if(WebP_FOUND AND NOT TARGET WebP::webp)
  add_library(WebP::webp UNKNOWN IMPORTED)
  set_target_properties(WebP::webp PROPERTIES IMPORTED_LOCATION "${WebP_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${WebP_INCLUDE_DIR}")
  add_library(WebP::demux UNKNOWN IMPORTED)
  set_target_properties(WebP::demux PROPERTIES IMPORTED_LOCATION "${WebP_DEMUX_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${WebP_INCLUDE_DIR}")
endif()
