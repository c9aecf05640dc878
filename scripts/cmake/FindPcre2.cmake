# SPDX-License-Identifier: Apache-2.0
# Finds libpcre2-dev, for texts of bytes, and defines Pcre2::Pcre2.
find_path(Pcre2_INCLUDE_DIR NAMES pcre2.h)
find_library(Pcre2_LIBRARY NAMES pcre2-8)
if(Pcre2_INCLUDE_DIR)
  file(STRINGS "${Pcre2_INCLUDE_DIR}/pcre2.h" pcre2_lines REGEX "define PCRE2_(MAJOR|MINOR) ")
  string(REGEX REPLACE ".*PCRE2_MAJOR +([0-9]+).*PCRE2_MINOR +([0-9]+).*" "\\1.\\2" Pcre2_VERSION "${pcre2_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pcre2 REQUIRED_VARS Pcre2_INCLUDE_DIR Pcre2_LIBRARY VERSION_VAR Pcre2_VERSION
  REASON_FAILURE_MESSAGE "install libpcre2-dev (scripts/install_deps.sh does)")
if(Pcre2_FOUND AND NOT TARGET Pcre2::Pcre2)
  add_library(Pcre2::Pcre2 UNKNOWN IMPORTED)
  set_target_properties(Pcre2::Pcre2 PROPERTIES IMPORTED_LOCATION "${Pcre2_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Pcre2_INCLUDE_DIR}")
endif()
