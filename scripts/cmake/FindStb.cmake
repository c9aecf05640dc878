# SPDX-License-Identifier: Apache-2.0
# Finds libstb-dev and defines Stb::Stb.
find_path(Stb_INCLUDE_DIR NAMES stb_truetype.h PATH_SUFFIXES stb)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Stb REQUIRED_VARS Stb_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libstb-dev (scripts/install_deps.sh does)")
if(Stb_FOUND AND NOT TARGET Stb::Stb)
  add_library(Stb::Stb INTERFACE IMPORTED)
  set_target_properties(Stb::Stb PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Stb_INCLUDE_DIR}")
endif()
