// SPDX-License-Identifier: Apache-2.0
// dist_device_sync between processes that mpirun started, each with fake GPUs: real MPI, the code
// of the NCCL communicator, and an NCCL that sums through shared memory. Without a launcher the
// cases are skipped; training_test.sh starts them.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/mpi_library.h"
#include "tests/gpu/ranks/fake_nccl.h"
#include "tests/support/fake_gpu_runs.h"
#include "tests/support/fake_rank_gpus.h"

namespace {

thread_local int current = 0;

}  // namespace

// CUDA's runtime, as far as it is called.
extern "C" cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaSetDevice(int device) {
  current = device;
  return cudaSuccess;
}

namespace mxtrain::cuda {

bool HasContext(int) {
  return true;
}
void ThrowFailed(cudaError_t, const char* call) {
  throw Error(ErrorKind::kDevice, call);
}

}  // namespace mxtrain::cuda

namespace mxtrain::test {
namespace {

using Group = std::shared_ptr<ProcessGroup>;

Group Join(const ProcessGroup::Options& options) {
  const std::optional<Launch> launch = FindLaunch();
  REQUIRE_MESSAGE(launch.has_value(), "start it with mpirun (training_test.sh)");
  return std::make_shared<ProcessGroup>([mpi = launch->mpi] { return OpenMpi(mpi); }, options);
}

CommunicatorFactory NcclOverFakes(const Group& group, bool shared = false) {
  static const cuda::Nccl nccl = FakeNccl(HostAddressOf);
  return [group, shared](std::span<const Context> devices) -> std::unique_ptr<Communicator> {
    std::vector<int> ids;
    std::vector<std::string> identities;
    for (const Context device : devices) {
      ids.push_back(device.id);
      identities.push_back(format("{} of rank {}", device.ToString(), shared ? 0 : group->rank()));
    }
    return std::make_unique<cuda::NcclCommunicator>(
        std::make_unique<cuda::NcclGroup>(nccl, ids, OrderGpus(*group, identities), group), devices,
        kFakeStreams);
  };
}

RunSpec OfRank(RunSpec spec, const Group& group) {
  spec.kvstore = "dist_device_sync";
  spec.group = group;
  spec.new_communicator = NcclOverFakes(group);
  return spec;
}

// Rank 0's outcome.
Outcome RunRank(const TempDir& data, RunSpec spec) {
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
  if (!spec.group->first()) return {"", log.epochs, {}};
  return OutcomeOf(process, spec, log);
}

TEST_CASE("training: processes with a fake GPU or two give the bits of one process") {
  const Group group = Join({.timeout_seconds = 120});
  REQUIRE(group->size() == 2);
  const TempDir data;
  WriteTable(data);
  std::vector<RunSpec> specs(4, OnFakeGpus(1));
  specs[1].clip_norm = 0.5;
  specs[1].average_decay = 0.9;
  specs[1].bucket_bytes = 1;
  specs[2].grad_accum = 2;
  specs[2].optimizer = {"adam", {{"lr", "0.01"}}};
  specs[3].symbol = QuietNet();
  specs[3].dist.wire = DistOptions::Wire::kBfloat16;
  for (const RunSpec& spec : specs) {
    const Outcome ranks = RunRank(data, OfRank(spec, group));
    if (!group->first()) continue;
    const Outcome one = RunWhole(data, Alone(spec));
    CheckSameCheckpoint(ranks, one);
    CheckNearlySameEpochs(ranks, one);
  }
  // Two GPUs on each: as four logical workers, which add in the same order.
  RunSpec two = OnFakeGpus(2), four;
  four.symbol = two.symbol;
  four.workers = 4;
  const Outcome ranks = RunRank(data, OfRank(two, group));
  if (group->first()) CHECK(ranks.bits == RunWhole(data, four).bits);
  CHECK(CountsOfFakeNccl().communicators == 6);
  CHECK(CountsOfFakeNccl().destroyed == 6);
  CHECK(CountsOfFakeNccl().aborted == 0);
  group->Close();
}

constexpr int kExitCode = 10;

// Blocks a rank in the middle of a run, so that it neither sums nor answers. Launchers differ in
// how they end it, so it ends by itself at last.
class Stuck final : public TrainListener {
 public:
  void OnStep(const StepEvent& e) override {
    if (e.step < 7) return;
    std::this_thread::sleep_for(std::chrono::seconds(60));
    std::_Exit(kExitCode);
  }
};

TEST_CASE("stuck: a rank that does not answer ends the others within the timeout, named") {
  const Group group = Join({.timeout_seconds = 10});
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = OfRank(OnFakeGpus(1), group);
  spec.epochs = 100;
  spec.report_steps = 1;
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Stuck stuck;
  Log log;
  const auto begin = std::chrono::steady_clock::now();
  try {
    group->first() ? process.trainer->Run(log) : process.trainer->Run(stuck);
    FAIL("the run must not end");
  } catch (const Error& e) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    CHECK(e.kind() == kRankLost);
    CHECK(seconds.count() < 50);
    CHECK(log.epochs.size() == 1);
    CHECK(log.saves == 1);  // nothing of what was aborted
    std::printf("rank %d ended: %s; aborted: %d\n", group->rank(), e.what(),
                CountsOfFakeNccl().aborted);
    std::fflush(stdout);
    process.trainer.reset();
    std::_Exit(kExitCode);
  }
}

TEST_CASE("shared: two processes with the same GPU are refused, both with the code of the usage") {
  const Group group = Join({.timeout_seconds = 30});
  const TempDir data;
  WriteTable(data);
  RunSpec spec = OfRank(OnFakeGpus(1), group);
  spec.new_communicator = NcclOverFakes(group, /*shared=*/true);
  try {
    const Process process(data, spec);
    FAIL("the run must not begin");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kUsage);
    std::printf("rank %d refused: %s\n", group->rank(), e.what());
    std::fflush(stdout);
    group->Abort(static_cast<int>(e.kind()));  // the code of a mere exit races in MPICH's launcher
    std::_Exit(static_cast<int>(e.kind()));
  }
}

}  // namespace
}  // namespace mxtrain::test
