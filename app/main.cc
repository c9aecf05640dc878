// SPDX-License-Identifier: Apache-2.0
// The program: lets the commands declare themselves, runs one, and turns errors into a message and
// an exit code. The only place that catches all errors.
#include <execinfo.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>

#include "app/commands/command.h"
#include "app/commands/command_list.h"
#include "app/commands/distributed_run.h"
#include "app/commands/exit_codes.h"
#include "app/config/config.h"
#include "app/config/diagnostic.h"
#include "app/fetch/remote_file.h"
#include "app/report/output.h"
#include "app/report/plot/face.h"
#include "app/report/process_memory.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace {

using namespace mxtrain;
using commands::Arguments, commands::CommandLine, commands::CommonFlags;

constexpr int kMaxThreads = 1024;

// How files at addresses that the user names are downloaded. Each flag sets the environment
// variable that fetch/remote_file.h reads, so that commands that run others pass it on.
struct DownloadFlags {
  bool offline = false;
  std::string cache_dir, most;

  void Declare(Arguments arguments) {
    arguments.Flag("--offline", &offline,
                   "download nothing: weights at an address must be in the cache "
                   "(MXTRAIN_OFFLINE=1)");
    arguments
        .Option("--cache-dir", &cache_dir,
                "where downloaded weights are kept (MXTRAIN_CACHE_DIR); default: mxtrain in "
                "XDG_CACHE_HOME or ~/.cache")
        .Takes("DIR");
    arguments
        .Option(
            "--max-download", &most,
            "largest file that is downloaded (MXTRAIN_MAX_DOWNLOAD), 0 for no limit; default: 4GiB")
        .Takes("SIZE");
  }
  void Apply() const {
    if (!most.empty() && !config::ParseByteCount(most)) {
      Throw(ErrorKind::kUsage,
            "--max-download '{}' is not a size; use 4GiB, 500MB or a number of bytes", most);
    }
    if (offline) setenv("MXTRAIN_OFFLINE", "1", 1);
    if (!cache_dir.empty())
      setenv("MXTRAIN_CACHE_DIR", std::filesystem::absolute(cache_dir).c_str(), 1);
    if (!most.empty()) setenv("MXTRAIN_MAX_DOWNLOAD", most.c_str(), 1);
  }
};

void DeclareCommonFlags(Arguments arguments, CommonFlags* flags) {
  arguments.Flag("--json", &flags->json, "print only JSON on stdout");
  arguments.Flag("-v,--verbose", &flags->verbose, "say more: --log-level debug");
  arguments.Flag("-q,--quiet", &flags->quiet, "print only warnings and errors");
  arguments
      .Option(
          "--device", &flags->device,
          "auto (the first GPU, else the CPU), cpu, gpu, gpu:N, or gpu:0,1 to train on several; "
          "auto gives each process of mpirun or srun on a machine a GPU of its own")
      .ShowsDefault();
  arguments.Flag("--strict-device", &flags->strict_device,
                 "refuse operators that have no kernel on the GPU, instead of running them on the "
                 "CPU between copies");
  arguments.Option("--seed", &flags->seed, "random seed; overrides the configuration's")
      .Within(int64_t{0}, config::kMostInteger);
  arguments
      .Option("--threads", &flags->threads, "compute threads; 0: all CPUs available to the process")
      .Within(0, kMaxThreads);
  arguments
      .Option("--cpu-workers", &flags->cpu_workers,
              "workers that divide the compute threads and run independent operators of a net side "
              "by side")
      .Within(1, kMaxThreads)
      .ShowsDefault();
  arguments
      .Option("--engine", &flags->engine,
              "threaded, or naive: one operation at a time, for debugging")
      .OneOf({"threaded", "naive"})
      .ShowsDefault();
  arguments.Flag("--deterministic", &flags->deterministic,
                 "use only bit-reproducible kernels, and none chosen by timing");
  arguments
      .Option(
          "--log-level", &flags->log_level,
          "what to log: debug, info, warning, error or off; MODULE=LEVEL for one of engine, "
          "executor, io, kvstore, ndarray, storage, train, program; separated by commas; default: "
          "info")
      .Takes("LEVELS");
  arguments
      .Option("--log-size", &flags->log_size,
              "size at which a run's mxtrain.log is rotated (mxtrain.1.log to mxtrain.3.log); 0: "
              "never")
      .Takes("SIZE")
      .ShowsDefault();
  arguments.Option("--color", &flags->color, "auto, always or never")
      .OneOf({"auto", "always", "never"})
      .ShowsDefault();
  arguments.Option("--progress", &flags->progress, "auto, bar, lines or none")
      .OneOf({"auto", "bar", "lines", "none"})
      .ShowsDefault();
  arguments.Option("--plugin", &flags->plugins, "shared object with operators; may be repeated")
      .Takes("FILE")
      .Repeats();
}

console::ConsoleOptions ToConsoleOptions(const CommonFlags& flags) {
  console::ConsoleOptions options;
  options.color = flags.color == "always"  ? console::Choice::kAlways
                  : flags.color == "never" ? console::Choice::kNever
                                           : console::Choice::kAuto;
  options.progress = flags.progress == "bar"     ? console::Progress::kBar
                     : flags.progress == "lines" ? console::Progress::kLines
                     : flags.progress == "none"  ? console::Progress::kNone
                                                 : console::Progress::kAuto;
  options.quiet = flags.quiet;
  return options;
}

void AddLogOptions(const CommonFlags& flags, console::ConsoleOptions* options) {
  if (flags.verbose && !flags.log_level.empty())
    Throw(ErrorKind::kUsage, "-v is short for --log-level debug; give one of them");
  if (!flags.log_level.empty()) options->levels = LogLevels::Parse(flags.log_level);
  if (flags.verbose) options->levels.level = LogLevel::kDebug;
  const auto log_size = config::ParseByteCount(flags.log_size);
  if (!log_size) {
    Throw(ErrorKind::kUsage,
          "--log-size '{}' is not a size; use 16MiB, 500KiB or a number of bytes", flags.log_size);
  }
  options->log_bytes = log_size->bytes;
}

// `first`: of the processes of a distributed run. The others say one line of what is wrong with the
// configuration: it may be wrong for them alone.
int ReportError(const CommonFlags& flags, console::Console& console,
                const std::exception_ptr& pointer, bool first = true) {
  const int code = commands::ExitCodeOf(pointer);
  const auto say = [&](LogLevel level, std::string_view text) {
    console.Message(level, report::Printable(text));  // one line
  };
  try {
    std::rethrow_exception(pointer);
  } catch (const config::DiagnosticError& e) {
    const std::string text = e.what();
    if (!first) console.Message(LogLevel::kError, text.substr(0, text.find('\n')));
    if (first) std::cerr << text;
    if (flags.json)
      std::cout << report::JsonText({{"error", "configuration"},
                                     {"code", code},
                                     {"diagnostics", Json::parse(e.Json())}})
                << std::endl;
  } catch (const fetch::StoppedError& e) {
    console.Message(LogLevel::kInfo, e.what());
  } catch (const Error& e) {
    if (!first && dynamic_cast<const commands::SharedError*>(&e)) return code;
    say(LogLevel::kError, e.what());
    if (flags.json)
      std::cout << report::JsonText({{"error", e.what()}, {"code", code}}) << std::endl;
  } catch (const std::filesystem::filesystem_error& e) {
    say(LogLevel::kError, e.what());
  } catch (const std::bad_alloc&) {
    console.Message(
        LogLevel::kError,
        format("out of memory, after {} were taken; lower data.batch_size, or raise the "
               "limit (ulimit -v, or that of the container)",
               FormatBytes(report::PeakMemoryBytes())));
  } catch (const std::exception& e) {
    console.Message(LogLevel::kError, format("internal error: {}", e.what()));
  }
  return code;
}

// Of a command that knows nothing of the processes beside it.
void WarnOfCopies(console::Console& console) {
  const std::optional<Launch> launch = FindLaunch();
  if (!launch || launch->size == 1 || launch->rank > 0) return;
  console.Message(LogLevel::kWarning,
                  format("{} started {} processes, and each does all of this: only `train` divides "
                         "its work",
                         launch->launcher, launch->size));
}

// By default, threads of an OpenMP team busy-wait for the others for milliseconds. If other work
// shares the cores, the awaited thread often cannot run because a waiting one occupies its core: a
// step of small layers becomes 30 times slower (lib/docs/decisions/0014-barriers-sleep.md). The
// runtime reads the limit from the environment before main, so the program restarts itself.
void BoundBarrierSpin(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);  // some microseconds, then sleep
  std::error_code none;
  std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();
  // Without /proc: the path by which the kernel was told to start it.
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (program.empty() && started) program = started;
  execv(program.c_str(), argv);  // if it fails, the run is only slower
}

// At once: other threads may be running.
[[noreturn]] void ExitForMemory(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
  }
  _exit(static_cast<int>(ErrorKind::kMemory));
}

const std::terminate_handler kDefaultTerminate = std::get_terminate();

// The last resort where no handler is on the stack: memory that ran out at the edge of a thread.
void Terminate() {
  try {
    if (const std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    ExitForMemory("error: out of memory; lower data.batch_size\n");
  } catch (...) {
  }
  kDefaultTerminate();
}

std::atomic<bool> leaving{false};

// Before the program leaves, only a library can have called exit(): OpenMP's runtime does, with the
// code of a bug, after saying that it gets no thread or no memory. (MPI_Abort may, with ours.)
void OnExit() {
  if (leaving) return;
  ExitForMemory(
      "error: a library ended the program, as OpenMP does without threads or memory; raise the "
      "limit (ulimit -u, ulimit -v, or that of the container), or use fewer threads (--threads, "
      "data.workers)\n");
}

// Loads what the C library would otherwise load when the first thread is cancelled or ends by an
// exception, when there may be no memory for it and it would abort.
void LoadUnwinder() {
  void* frame = nullptr;
  backtrace(&frame, 1);
}

int Main(int argc, char** argv) {
  // Exit quietly when stdout is closed (`| head`).
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with an error
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line += (i ? " " : "") + report::QuoteShell(argv[i]);

  CommandLine line("mxtrain", "Trains neural networks from a shell.", commands::VersionText);
  line.common().Examples(
      "  mxtrain train configs/mnist/lenet.yaml\n  mxtrain eval runs/latest\n  mxtrain infer "
      "runs/latest FOLDER\n"
      "  mxtrain plan configs/imagenet/resnet50.yaml data.batch_size=64");
  CommonFlags flags;
  DeclareCommonFlags(line.common(), &flags);
  DownloadFlags downloads;
  downloads.Declare(line.common());

  commands::DistributedRun distributed(&leaving);
  commands::CommandList all({command_line, line, distributed});
  commands::RegisterCommands(all);
  all.Declare(line);

  int exit_code = 0;
  const int named = line.Parse(argc, argv, &exit_code);
  commands::Command* const command = named >= 0 ? &all[static_cast<size_t>(named)] : nullptr;
  if (command && command->Computes()) BoundBarrierSpin(argv);
  console::ConsoleOptions console_options = ToConsoleOptions(flags);
  if (command && command->RunsInRanks()) distributed.Find(&flags, &console_options);
  std::optional<console::Console> console;
  try {
    AddLogOptions(flags, &console_options);
    downloads.Apply();
    console.emplace(console_options);
    if (command && command->Computes() && !command->RunsInRanks()) WarnOfCopies(*console);
    if (command) exit_code = command->Run(flags, *console);
    if (const std::string note = plot::NoteOfMissing(plot::MissingCharacters()); !note.empty())
      console->Message(LogLevel::kWarning, note);
    report::FlushResults();
  } catch (...) {
    if (!console) console.emplace(console_options);
    exit_code = ReportError(flags, *console, std::current_exception(), distributed.first());
  }
  leaving = true;
  try {
    return distributed.End(exit_code);
  } catch (...) {
    return ReportError(flags, *console, std::current_exception());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(Terminate);
  std::atexit(OnExit);
  LoadUnwinder();
  const int code = Main(argc, argv);
  leaving = true;
  return code;
}
