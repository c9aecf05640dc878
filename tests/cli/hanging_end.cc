// SPDX-License-Identifier: Apache-2.0
// A rank that does not come out of MPI_Finalize, as where a network is gone: preloaded into every
// rank, it lets the one of MXTRAIN_HANGING_RANK sleep there for longer than a test lasts.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int MPI_Finalize() {
  constexpr unsigned kSeconds = 600;
  const char* hanging = std::getenv("MXTRAIN_HANGING_RANK");
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (hanging && std::atoi(hanging) == rank) sleep(kSeconds);
  return PMPI_Finalize();
}
