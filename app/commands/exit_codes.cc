// SPDX-License-Identifier: Apache-2.0
#include "app/commands/exit_codes.h"

#include <algorithm>
#include <filesystem>
#include <new>

#include "app/commands/command.h"
#include "app/fetch/remote_file.h"
#include "mxtrain/base/error.h"
#include "mxtrain/device/process_group.h"

namespace mxtrain::commands {
namespace {

constexpr int CodeOf(ErrorKind kind) {
  return static_cast<int>(kind);
}

constexpr ExitCode kExitCodes[] = {
    {0, "done", "the command completed", "",
     "No action needed. Results are on stdout, or in the files and the run folder named on stderr. "
     "Training exits with 0 unless a signal "
     "stops it: `end` in the run folder's result.json (and with --json) is complete, time_limit "
     "(train.time_limit), target or "
     "no_improvement (train.early_stop). With --min-metric 0.9 a run that stays below exits with "
     "9."},
    {CodeOf(ErrorKind::kBug), "bug", "an error in the program itself",
     "an internal invariant was violated\n"
     "an operator of a plug-in wrote out of bounds",
     "Report the message, the configuration and env.txt of the run folder. Try `--engine naive`, "
     "which runs operations one at a time, and "
     "report whether that works. Try again without --plugin, if you use one."},
    {CodeOf(ErrorKind::kUsage), "usage", "the command line is invalid or contradicts itself",
     "a misspelled command or flag; the message suggests the nearest\n"
     "a configuration key written as a flag: use train.epochs=5, not --epochs 5\n"
     "two flags that exclude each other, such as --resume and --overwrite",
     "`mxtrain COMMAND --help` shows examples and lists every flag."},
    {CodeOf(ErrorKind::kConfig), "configuration", "the configuration is invalid",
     "a key that does not exist, or is in the wrong section\n"
     "a value of the wrong type or out of range\n"
     "a layer whose shapes do not match those of the layers before it\n"
     "train.amp: bf16 or fp16 on a device that does not support it\n"
     "a tab or wrong indentation in the YAML",
     "Each error names file, line and column, and most say what to write. `mxtrain check CONFIG` "
     "lists all of them at once. "
     "`mxtrain check --schema` lets an editor complete and check the keys; `mxtrain ops NAME` "
     "lists the parameters of a layer."},
    {CodeOf(ErrorKind::kData), "data", "the data or a model file cannot be used",
     "a path that does not exist; paths are relative to the file that names them\n"
     "images that are damaged, or of a format that is not read\n"
     "a class without images, or a label that is not a class\n"
     "a damaged checkpoint",
     "`mxtrain check CONFIG` reads everything once and names each bad file. data.max_bad sets the "
     "fraction of unreadable training images "
     "tolerated; `--skip-bad` makes eval and infer skip them. If `last` is damaged, the run folder "
     "also holds `previous` and numbered "
     "checkpoints."},
    {CodeOf(ErrorKind::kDevice), "device", "the device is missing or does not support the request",
     "--device gpu without a GPU, its driver or its libraries",
     "`mxtrain devices` lists the devices and says what is missing. --device cpu always works."},
    {CodeOf(ErrorKind::kMemory), "memory", "not enough memory",
     "a batch that is too large for the net\n"
     "more open files than the limit allows (ulimit -n)\n"
     "a cache of decoded images next to other programs",
     "Lower data.batch_size, or set `data.batch_size: auto`. `mxtrain plan CONFIG --memory 8GiB` "
     "prints the largest batch that fits; "
     "train.memory_budget trains within a given size by recomputing activations. Limit the cache "
     "with data.cache_bytes."},
    {CodeOf(ErrorKind::kDiverged), "diverged", "the loss became NaN or infinite",
     "a learning rate that is too high, or starts without warm-up\n"
     "inputs that are not normalized, or labels that are NaN or infinite\n"
     "a custom loss that divides by 0 or takes the logarithm of 0\n"
     "gradients outside the range of float16, with train.amp: fp16",
     "The message names the step. Divide the learning rate by ten, add lr_schedule.warmup_epochs: "
     "1 or clip: {norm: 1}, and inspect the "
     "data of that step. The last checkpoint is from before it. `mxtrain lr-find CONFIG` suggests "
     "an initial rate; `mxtrain runs` shows "
     "which runs diverged."},
    {CodeOf(ErrorKind::kFileSystem), "file system", "a file or folder could not be read or written",
     "a full disk, also when stdout is a file\n"
     "a folder without write permission\n"
     "a run folder that already holds a run, or a file that exists already",
     "Earlier checkpoints are intact: each is written to a temporary file and then renamed. Free "
     "some space, or choose another folder "
     "with --out, and continue with --resume. --overwrite replaces a run, or a file."},
    {CodeOf(ErrorKind::kCheckFailed), "check failed", "a requested check did not pass",
     "`mxtrain check` found problems in the data; if training cannot start, it exits with 3, 4, 7 "
     "or 8, as `mxtrain train` would\n"
     "the best metric of a run did not reach --min-metric\n"
     "`mxtrain lr-find` found no rate at which the loss decreases",
     "Nothing is broken. The findings are on stderr, and with --json on stdout."},
    {CodeOf(kRankLost), "rank lost", "another process of a distributed run was lost",
     "a machine that failed or was switched off\n"
     "a process killed by hand, or by the system for lack of memory\n"
     "a network that does not deliver within train.kvstore.timeout",
     "The message names the rank, if it is known. Nothing was saved since the last checkpoint, "
     "which "
     "is intact: start the job again with --resume, on the hosts that are left; the number of "
     "processes may differ."},
    {129, "hung up", "SIGHUP ended the command", "a closed terminal, a lost connection",
     "Training has saved, and --resume continues with bit-identical results. `nohup mxtrain train "
     "...` keeps running without its terminal."},
    {130, "interrupted", "SIGINT (Ctrl-C) ended the command", "Ctrl-C",
     "Training has saved; the last lines say how to continue. A second Ctrl-C exits at once, "
     "without saving."},
    {143, "terminated", "SIGTERM ended the command",
     "`kill`, a scheduler's time limit, a machine shutting down",
     "Training has saved, and --resume continues with bit-identical results."},
};

}  // namespace

std::span<const ExitCode> ExitCodes() {
  return kExitCodes;
}

int ExitCodeOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const fetch::StoppedError&) {
    return 128 + StopSignal();
  } catch (const Error& e) {
    return CodeOf(e.kind());
  } catch (const std::filesystem::filesystem_error&) {
    return CodeOf(ErrorKind::kFileSystem);
  } catch (const std::bad_alloc&) {
    return CodeOf(ErrorKind::kMemory);
  } catch (...) {
    return CodeOf(ErrorKind::kBug);
  }
}

const ExitCode* FindExitCode(const std::string& word) {
  const auto fits = [&word](const ExitCode& code) {
    return std::to_string(code.code) == word ||
           (word.size() > 2 && std::string(code.name).starts_with(word));
  };
  const auto found = std::find_if(std::begin(kExitCodes), std::end(kExitCodes), fits);
  return found == std::end(kExitCodes) ? nullptr : found;
}

}  // namespace mxtrain::commands
