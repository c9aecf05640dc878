// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/mpi_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/device/own_folder.h"

namespace mxtrain {
namespace {

std::optional<int> Number(const char* name) {
  const char* text = std::getenv(name);
  if (!text || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);  // "4" of "4(x2)", as Slurm counts tasks by node
  if (end == text || value < 0 || value > 1 << 24) return std::nullopt;
  return static_cast<int>(value);
}

// The variables of one launcher: sizes and ranks, of all processes and of those on this machine.
struct Variables {
  const char *launcher, *mpi;
  const char *size, *rank, *local_size, *local_rank;
};

// The innermost launcher first: mpirun may run inside a step of srun.
constexpr Variables kLaunchers[] = {
    {"mpirun (Open MPI)", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpirun (MPICH)", "mpich", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    // Set in the steps that srun starts, not in a batch script.
    {"srun", "openmpi", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_LOCALID"}};

std::string NameOfMpi(const std::string& mpi) {
  return mpi == "mpich" ? "MPICH" : "Open MPI";
}

struct Opened {
  void* library = nullptr;
  std::string why_not;
};

Opened Open(const std::string& mpi) {
  if (mpi != "openmpi" && mpi != "mpich")
    Throw(ErrorKind::kUsage, "there is no MPI '{}'; use openmpi or mpich", mpi);
  const std::string file = format("libmxtrain_{}.so", mpi), path = BesideThisLibrary(file);
  if (path.empty()) {
    return {nullptr, format("this build of mxtrain has no {} ({}); install its development "
                            "package and build again",
                            NameOfMpi(mpi), file)};
  }
  // Plug-ins that MPI opens itself need its symbols.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library) return {library, ""};
  const char* text = dlerror();
  return {nullptr, format("cannot load {} ({}); install {}", file, text ? text : "unknown error",
                          NameOfMpi(mpi))};
}

}  // namespace

std::optional<Launch> FindLaunch() {
  for (const Variables& names : kLaunchers) {
    const std::optional<int> size = Number(names.size), rank = Number(names.rank);
    if (!size || !rank || *size < 1 || *rank >= *size) continue;
    Launch launch{names.launcher, names.mpi, *rank, *size};
    launch.local_size = Number(names.local_size).value_or(1);
    launch.local_rank = Number(names.local_rank).value_or(0);
    return launch;
  }
  return std::nullopt;
}

std::unique_ptr<Transport> OpenMpi(std::string mpi) {
  if (mpi.empty()) {
    if (const std::optional<Launch> launch = FindLaunch()) mpi = launch->mpi;
  }
  Opened opened = Open(mpi.empty() ? "openmpi" : mpi);
  if (!opened.library && mpi.empty()) {
    const Opened other = Open("mpich");
    if (other.library) opened = other;
  }
  if (!opened.library)
    Throw(ErrorKind::kDevice, "a distributed KVStore needs MPI: {}", opened.why_not);
  auto* make =
      reinterpret_cast<Transport* (*)()>(dlsym(opened.library, "mxtrain_new_mpi_transport"));
  MXTRAIN_ASSERT(make);
  return std::unique_ptr<Transport>(make());
}

}  // namespace mxtrain
