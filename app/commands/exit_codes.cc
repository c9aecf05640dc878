#include "app/commands/exit_codes.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

constexpr int CodeOf(ErrorKind kind) { return static_cast<int>(kind); }

constexpr ExitCode kExitCodes[] = {
    {0, "done", "everything that was asked for was done", "",
     "Nothing is to do. Results are on stdout, or in the files and the run folder that were named on stderr. A training ends with 0 whatever ended it but a "
     "signal: `end` in the run folder's result.json (and with --json) is complete, time_limit (train.time_limit), target or no_improvement "
     "(train.early_stop). --min-metric 0.9 gives 9 where the run was not as good as that."},
    {CodeOf(ErrorKind::kBug), "bug", "the program is wrong, not you",
     "an invariant of the program's own code did not hold\n"
     "a plug-in's operator wrote where it must not",
     "Keep the message, the configuration and env.txt of the run folder, and report them. Try `--engine naive`, which runs one function after the "
     "other: if it goes well there, say so. Leave out --plugin, if there is one."},
    {CodeOf(ErrorKind::kUsage), "usage", "the command line cannot be understood, or asks for what contradicts itself",
     "a misspelt command or flag; the message names the nearest\n"
     "a key of the configuration written as a flag: train.epochs=5, not --epochs 5\n"
     "two flags of which only one can hold, as --resume and --overwrite",
     "`mxtrain COMMAND --help` begins with examples and lists every flag."},
    {CodeOf(ErrorKind::kConfig), "configuration", "the configuration cannot be trained as it is written",
     "a key that does not exist, or stands in the wrong section\n"
     "a value of another type, or out of its range\n"
     "a layer whose shapes do not fit those before it\n"
     "train.amp: bf16 or fp16 on a device without fast arithmetic in it\n"
     "a tab, or wrong indentation, in the YAML",
     "Each finding names file, line and column, and most say what to write. `mxtrain check CONFIG` lists all of them at once. `mxtrain check --schema` "
     "lets an editor complete and check the keys; `mxtrain ops NAME` lists the parameters of a layer."},
    {CodeOf(ErrorKind::kData), "data", "the data, or a model file, cannot be used",
     "a path that does not exist: it is relative to the file that names it\n"
     "pictures that are damaged, or are no JPEG, PNG or BMP\n"
     "a class without pictures, or a label that is no class\n"
     "a checkpoint that is damaged",
     "`mxtrain check CONFIG` reads everything once and names each file. data.max_bad bears a share of unreadable training pictures; `--skip-bad` lets "
     "eval and infer pass over them. Where `last` is damaged, the run folder also holds `previous` and numbered checkpoints."},
    {CodeOf(ErrorKind::kDevice), "device", "the device cannot do what is asked",
     "--device gpu without a GPU, its driver or its libraries",
     "`mxtrain devices` says what is there, and why something is not. --device cpu always works."},
    {CodeOf(ErrorKind::kMemory), "memory", "there is not enough memory",
     "a batch that is too large for the net\n"
     "a cache of decoded pictures beside other programs",
     "Lower data.batch_size, or write `data.batch_size: auto`. `mxtrain plan CONFIG --memory 8GiB` says the largest batch that fits; train.memory_budget "
     "trains within a given size by computing some of it twice. Bound the cache by data.cache_bytes."},
    {CodeOf(ErrorKind::kDiverged), "diverged", "the loss became infinite or is no number any more",
     "a learning rate that is too high, or that starts without a warm-up\n"
     "inputs that are not normalised, or labels that are no numbers\n"
     "a loss of the net's own that divides by 0 or takes the logarithm of 0\n"
     "gradients beyond the range of float16, with train.amp: fp16",
     "The message names the step. Divide the learning rate by ten, add lr_schedule.warmup_epochs: 1 or clip: {norm: 1}, and look at the data of "
     "that step. The last checkpoint is from before. `mxtrain lr-find CONFIG` finds a rate to begin with; `mxtrain runs` shows which runs diverged."},
    {CodeOf(ErrorKind::kFileSystem), "file system", "a file or folder could not be read or written",
     "a full disk: also of stdout, where it is a file\n"
     "a folder without the right to write\n"
     "a run folder that holds a run already",
     "What was saved before is whole: checkpoints are written beside and then renamed. Make room, or choose another folder with --out, and go on with "
     "--resume. --overwrite replaces a run."},
    {CodeOf(ErrorKind::kCheckFailed), "check failed", "a check that you asked for did not pass",
     "`mxtrain check` found something in the data; where no training could begin it ends with 3, 4, 7 or 8, as `mxtrain train` would\n"
     "the best metric of a run did not reach --min-metric\n"
     "`mxtrain lr-find` found no rate at which the loss falls",
     "Nothing broke. Each finding was said on stderr, and with --json is on stdout."},
    {129, "hung up", "SIGHUP ended the command", "a terminal that was closed, a connection that was lost",
     "As 130: training has saved, and --resume goes on to the same bits. `nohup mxtrain train ...` goes on without its terminal."},
    {130, "interrupted", "SIGINT (Ctrl-C) ended the command", "Ctrl-C",
     "Training has saved: the last lines say how to go on. A second Ctrl-C leaves at once, without a save."},
    {143, "terminated", "SIGTERM ended the command", "`kill`, a scheduler's time limit, a machine that shuts down",
     "As 130: training has saved, and --resume goes on to the same bits."},
};

}  // namespace

std::span<const ExitCode> ExitCodes() { return kExitCodes; }

const ExitCode* FindExitCode(const std::string& word) {
  const auto fits = [&word](const ExitCode& code) { return std::to_string(code.code) == word || (word.size() > 2 && std::string(code.name).starts_with(word)); };
  const auto found = std::find_if(std::begin(kExitCodes), std::end(kExitCodes), fits);
  return found == std::end(kExitCodes) ? nullptr : found;
}

}  // namespace mxtrain::commands
