# SPDX-License-Identifier: Apache-2.0
# Finds the two modules of OpenCV that are used here, core and imgproc, and defines OpenCVCore::core and OpenCVCore::imgproc.
# Debian ships OpenCV's own CMake configuration only with the package of all modules, which pulls in about 220 MB.
find_path(OpenCVCore_INCLUDE_DIR NAMES opencv2/imgproc.hpp PATH_SUFFIXES opencv4)
find_library(OpenCVCore_core_LIBRARY NAMES opencv_core)
find_library(OpenCVCore_imgproc_LIBRARY NAMES opencv_imgproc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenCVCore
  REQUIRED_VARS OpenCVCore_INCLUDE_DIR OpenCVCore_core_LIBRARY OpenCVCore_imgproc_LIBRARY
  REASON_FAILURE_MESSAGE "install libopencv-core-dev and libopencv-imgproc-dev (scripts/install_deps.sh does)")
foreach(part IN ITEMS core imgproc)
  if(OpenCVCore_FOUND AND NOT TARGET OpenCVCore::${part})
    add_library(OpenCVCore::${part} UNKNOWN IMPORTED)
    set_target_properties(OpenCVCore::${part} PROPERTIES IMPORTED_LOCATION "${OpenCVCore_${part}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${OpenCVCore_INCLUDE_DIR}")
  endif()
endforeach()
