// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes started together by mpirun or srun, and MPI between them. Open MPI and MPICH have
// different binary interfaces, so each has a small library of ours, libmxtrain_openmpi.so and
// libmxtrain_mpich.so, which is opened when a distributed run begins: everything else runs without
// MPI.
#include <memory>
#include <optional>
#include <string>

#include "mxtrain/device/process_group.h"

namespace mxtrain {

// What a launcher tells the processes that it starts, by environment variables.
struct Launch {
  std::string launcher;    // "mpirun (Open MPI)"
  std::string mpi;         // "openmpi" or "mpich", by MXTRAIN_MPI or the launcher; "": either
  int rank = 0, size = 1;  // of all processes
  int local_size = 1;      // how many are on this machine
  int local_rank = 0;      // of them
  bool bound = false;      // the launcher has given this process CPUs of its own
};

// Nothing if this process was not started by a launcher.
MXTRAIN_API std::optional<Launch> FindLaunch();

// Initializes MPI in this thread, which makes all further calls. `mpi`: "openmpi" or "mpich"; "":
// whichever is installed. Throws kDevice, saying what is missing.
MXTRAIN_API std::unique_ptr<Transport> OpenMpi(const std::string& mpi);

}  // namespace mxtrain
