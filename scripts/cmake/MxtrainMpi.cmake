# SPDX-License-Identifier: Apache-2.0
# Open MPI and MPICH, each beside the other as Debian installs them: MXTRAIN_MPIS lists those that are found, MXTRAIN_<mpi>_INCLUDE_DIR
# and MXTRAIN_<mpi>_LIBRARY say where.
set(MXTRAIN_WITH_MPI AUTO CACHE STRING "Distributed training over Open MPI, MPICH or both: AUTO, ON or OFF")
set(MXTRAIN_MPIS "")
if(NOT MXTRAIN_WITH_MPI STREQUAL "OFF")
  find_path(MXTRAIN_openmpi_INCLUDE_DIR NAMES mpi.h PATH_SUFFIXES openmpi/include openmpi openmpi-x86_64
    HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
  find_library(MXTRAIN_openmpi_LIBRARY NAMES mpi PATH_SUFFIXES openmpi/lib
    HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
  find_path(MXTRAIN_mpich_INCLUDE_DIR NAMES mpi.h PATH_SUFFIXES mpich mpich-x86_64
    HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} NO_CMAKE_SYSTEM_PATH NO_SYSTEM_ENVIRONMENT_PATH)
  find_library(MXTRAIN_mpich_LIBRARY NAMES mpich)
  foreach(mpi IN ITEMS openmpi mpich)
    if(MXTRAIN_${mpi}_INCLUDE_DIR AND MXTRAIN_${mpi}_LIBRARY)
      list(APPEND MXTRAIN_MPIS ${mpi})
    endif()
  endforeach()
  if(MXTRAIN_WITH_MPI STREQUAL "ON" AND NOT MXTRAIN_MPIS)
    message(FATAL_ERROR "MXTRAIN_WITH_MPI=ON, but neither Open MPI nor MPICH was found; install libopenmpi-dev or libmpich-dev")
  endif()
endif()
message(STATUS "mxtrain: MPI '${MXTRAIN_MPIS}'")
