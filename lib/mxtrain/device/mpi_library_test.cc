// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/mpi_library.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/device/cpu/cpu_count.h"

namespace mxtrain {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// What a launcher that sets these variables, and no others, is taken for.
std::optional<Launch> LaunchOf(const Variables& variables) {
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS",
        "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_MPI_TYPE", "MXTRAIN_MPI"})
    unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  const std::optional<Launch> launch = FindLaunch();
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return launch;
}

Variables Slurm(const std::string& tasks_per_node, const std::string& node) {
  return {{"SLURM_STEP_NUM_TASKS", "11"},
          {"SLURM_PROCID", "5"},
          {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
          {"SLURM_NODEID", node}};
}

TEST_CASE("launchers are known by their variables") {
  CHECK_FALSE(LaunchOf({}));
  CHECK_FALSE(LaunchOf({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  CHECK_FALSE(LaunchOf({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "4"}}));
  CHECK_FALSE(LaunchOf({{"OMPI_COMM_WORLD_SIZE", "4x"}, {"OMPI_COMM_WORLD_RANK", "1"}}));
  const auto open = LaunchOf({{"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  REQUIRE(open);
  CHECK(open->mpi == "openmpi");
  CHECK(open->rank == 3);
  CHECK(open->size == 4);
  CHECK(open->local_size == 2);
  CHECK(open->local_rank == 1);
  const Variables hydra{
      {"PMI_SIZE", "8"}, {"PMI_RANK", "5"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}};
  CHECK(LaunchOf(hydra)->mpi == "mpich");
  CHECK(LaunchOf(hydra)->local_size == 2);
  CHECK(LaunchOf(hydra)->local_rank == 1);
}

TEST_CASE("srun says how many of its tasks are on this node, and which MPI they use") {
  CHECK(LaunchOf(Slurm("4(x2),3", "0"))->local_size == 4);
  CHECK(LaunchOf(Slurm("4(x2),3", "1"))->local_size == 4);
  CHECK(LaunchOf(Slurm("4(x2),3", "2"))->local_size == 3);
  CHECK(LaunchOf(Slurm("11", "0"))->local_size == 11);
  CHECK(LaunchOf(Slurm("", "7"))->local_size == 1);
  CHECK(LaunchOf(Slurm("4(x", "7"))->local_size == 1);
  Variables srun = Slurm("11", "0");
  CHECK(LaunchOf(srun)->local_rank == 0);
  srun.emplace_back("SLURM_LOCALID", "3");
  CHECK(LaunchOf(srun)->local_rank == 3);
  CHECK(LaunchOf(srun)->mpi.empty());
  CHECK(LaunchOf(srun)->rank == 5);
  srun.emplace_back("SLURM_MPI_TYPE", "pmi2");
  srun.emplace_back("PMI_SIZE", "11");  // as --mpi=pmi2 sets them
  srun.emplace_back("PMI_RANK", "5");
  CHECK(LaunchOf(srun)->launcher == "srun");
  CHECK(LaunchOf(srun)->mpi == "mpich");
  srun.emplace_back("MXTRAIN_MPI", "openmpi");
  CHECK(LaunchOf(srun)->mpi == "openmpi");
}

TEST_CASE("processes of one machine share its CPUs") {
  const int all = UsableCpuCount();
  ShareCpus(2, /*own_mask=*/false);
  CHECK(UsableCpuCount() == std::max(all / 2, 1));
  ShareCpus(1000, /*own_mask=*/false);
  CHECK(UsableCpuCount() == 1);
  ShareCpus(1, /*own_mask=*/true);
  CHECK(UsableCpuCount() == all);
}

}  // namespace
}  // namespace mxtrain
