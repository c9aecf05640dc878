// SPDX-License-Identifier: Apache-2.0
// Kernels chosen by measuring: once, stored with the run, and the same when it is continued.
#include <doctest/doctest.h>

#include "tests/support/fake_gpu.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// A machine on which the reference kernels are the fastest, or the slowest. Counts how often each
// kernel was measured under each key.
struct Machine {
  bool reference_is_fast = true;
  std::map<std::string, int> measured;

  RunSpec Spec() {
    RunSpec spec;
    spec.symbol = QuietNet();
    spec.ctx = Context::gpu(0);
    spec.make_runtime = [this](const RunSpec& s) {
      const auto seconds_of = [this](const std::string& key, const std::string& kernel) {
        ++measured[key + ": " + kernel];
        return (kernel == "ref") == reference_is_fast ? 1.0 : 2.0;
      };
      return NewChoosingRuntime(seconds_of, s.engine, s.seed);
    };
    return spec;
  }
  bool each_once() const {
    return std::all_of(measured.begin(), measured.end(),
                       [](const auto& item) { return item.second == 1; });
  }
};

// Runs to step 8 and returns the checkpoint's kernel choices.
KernelChoices::Table StopInTheMiddle(const TempDir& data, const RunSpec& spec) {
  Process process(data, spec);
  std::atomic<int> stop = 0;
  StopAfter listener(8, &stop);
  CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
  return CheckpointFolder(spec.folder).PeekLast().kernel_choices;
}

// Continues from there and returns the arrays at the end.
Bits GoOn(const TempDir& data, const RunSpec& spec) {
  Process process(data, spec);
  std::vector<std::string> warnings;
  process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
  Log log;
  process.trainer->Run(log);
  return BitsOf(LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last")));
}

TEST_CASE("a run continues with the kernels chosen for it, even if others have become faster") {
  const TempDir data, folder;
  WriteTable(data);
  Machine machine;
  const Outcome whole = RunWhole(data, machine.Spec());
  CHECK(machine.measured.size() >= 4);  // two kernels of two operators at least
  CHECK(machine.each_once());

  RunSpec spec = machine.Spec();
  spec.folder = folder.path("checkpoints");
  spec.kernel_choices = StopInTheMiddle(data, spec);
  REQUIRE(!spec.kernel_choices.empty());
  for (const auto& [key, choice] : spec.kernel_choices) CHECK(choice == "ref");
  const std::string stopped = ReadFile(CheckpointFolder(spec.folder).File("last"));
  machine = {.reference_is_fast = false, .measured = {}};
  CHECK(GoOn(data, spec) == whole.bits);
  CHECK(machine.measured.empty());
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);

  // Without stored choices the result would differ.
  folder.Write("checkpoints/last", stopped);
  spec.kernel_choices.clear();
  CHECK(GoOn(data, spec) != whole.bits);
  CHECK(!machine.measured.empty());
}

TEST_CASE("workers on several devices of one machine are measured once") {
  const TempDir data;
  WriteTable(data);
  Machine machine;
  RunSpec spec = machine.Spec();
  spec.devices = {Context::gpu(0), Context::gpu(1)};
  const Process process(data, spec);
  CHECK(!machine.measured.empty());
  CHECK(machine.each_once());
}

TEST_CASE(
    "a deterministic run measures nothing, and takes nothing that was chosen without that bound") {
  const TempDir data;
  WriteTable(data);
  Machine machine;
  RunSpec spec = machine.Spec();
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  const KernelChoices::Table chosen = StopInTheMiddle(data, spec);
  machine.measured.clear();

  spec = machine.Spec();
  spec.deterministic = true;
  const Bits bits = RunWhole(data, spec).bits;
  spec.kernel_choices = chosen;
  CHECK(RunWhole(data, spec).bits == bits);
  CHECK(machine.measured.empty());
}

TEST_CASE("evaluation by itself measures nothing, and uses stored choices") {
  const TempDir data;
  WriteTable(data);
  Machine machine;
  const RunSpec spec = machine.Spec();
  Process process(data, spec);
  const KernelChoices::Table chosen = ChoicesOf(process.runtime->backend(spec.ctx))->kept();
  machine.measured.clear();
  const auto runtime = spec.make_runtime(spec);
  KernelChoices* choices = ChoicesOf(runtime->backend(spec.ctx));
  choices->Keep(chosen);
  const Evaluation evaluation(*runtime, spec.symbol, *process.val, {}, nullptr, spec.ctx);
  CHECK(machine.measured.empty());
  CHECK(choices->kept() == chosen);
}

}  // namespace
}  // namespace mxtrain::test
