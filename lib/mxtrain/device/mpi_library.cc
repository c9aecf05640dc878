// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/mpi_library.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/device/own_folder.h"

namespace mxtrain {
namespace {

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::optional<int> Number(const char* name) {
  const std::string text = Variable(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Of a step of Slurm: "4(x2),3" for 4 on each of two machines and 3 on the third.
int TasksOnThisNode() {
  int node = Number("SLURM_NODEID").value_or(0);
  const std::string list = Variable("SLURM_STEP_TASKS_PER_NODE");
  const char *at = list.data(), *const end = at + list.size();
  while (at < end) {
    int tasks = 1, nodes = 1;
    at = std::from_chars(at, end, tasks).ptr;
    if (end - at > 2 && at[0] == '(' && at[1] == 'x') at = std::from_chars(at + 2, end, nodes).ptr;
    if (node < nodes) return std::max(tasks, 1);
    node -= nodes;
    at = std::find(at, end, ',');
    if (at < end) ++at;
  }
  return 1;
}

std::optional<Launch> OfVariables() {
  const auto launch = [](const char* launcher, const char* mpi, const char* size, const char* rank,
                         int local_size, const char* local_rank) -> std::optional<Launch> {
    const std::optional<int> n = Number(size), r = Number(rank);
    if (!n || !r || *n < 1 || *r >= *n) return std::nullopt;
    return Launch{launcher, mpi, *r, *n, local_size, Number(local_rank).value_or(0)};
  };
  // mpirun may run inside a step of srun, which may set the variables of PMI as well.
  if (auto found =
          launch("mpirun (Open MPI)", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
                 Number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1), "OMPI_COMM_WORLD_LOCAL_RANK"))
    return found;
  // Of hydra, MPICH's launcher, alone.
  if (const auto local_size = Number("MPI_LOCALNRANKS")) {
    if (auto found = launch("mpirun (MPICH)", "mpich", "PMI_SIZE", "PMI_RANK", *local_size,
                            "MPI_LOCALRANKID"))
      return found;
  }
  // Set in the steps that srun starts, not in a batch script.
  const std::string type = Variable("SLURM_MPI_TYPE");
  const char* mpi = type.starts_with("pmix")                               ? "openmpi"
                    : type.starts_with("pmi2") || type.starts_with("cray") ? "mpich"
                                                                           : "";
  return launch("srun", mpi, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", TasksOnThisNode(),
                "SLURM_LOCALID");
}

// Whether the launcher, an ancestor of this process, may use more CPUs than this process.
bool IsBound() {
  constexpr std::string_view kLaunchers[] = {"mpirun",  "mpiexec", "orterun",         "orted",
                                             "prterun", "prted",   "hydra_pmi_proxy", "slurmstepd"};
  cpu_set_t own, of_launcher;
  if (sched_getaffinity(0, sizeof own, &own) != 0) return false;
  for (pid_t process = getppid(); process > 1;) {
    std::ifstream file(format("/proc/{}/stat", process));
    // "PID (NAME) STATE PARENT ..."; a name may have parentheses.
    std::string stat;
    std::getline(file, stat);
    const size_t begin = stat.find('('), end = stat.rfind(')');
    if (begin == std::string::npos || end == std::string::npos || stat.size() < end + 4)
      return false;
    const std::string name = stat.substr(begin + 1, end - begin - 1);
    const auto is_name = [&name](std::string_view launcher) { return name.starts_with(launcher); };
    if (std::any_of(std::begin(kLaunchers), std::end(kLaunchers), is_name)) {
      return sched_getaffinity(process, sizeof of_launcher, &of_launcher) == 0 &&
             CPU_COUNT(&own) < CPU_COUNT(&of_launcher);
    }
    process = static_cast<pid_t>(std::strtol(stat.c_str() + end + 4, nullptr, 10));
  }
  return false;
}

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
  std::optional<Launch> launch = OfVariables();
  if (!launch) return launch;
  if (const std::string mpi = Variable("MXTRAIN_MPI"); !mpi.empty()) launch->mpi = mpi;
  launch->bound = IsBound();
  return launch;
}

std::unique_ptr<Transport> OpenMpi(const std::string& mpi) {
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
