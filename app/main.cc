// The program: declares the commands, runs one, and turns what goes wrong into a message and an exit code. The only catch of all errors.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "app/commands/command.h"
#include "app/config/diagnostic.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"

namespace {

using namespace mxtrain;

constexpr const char* kVersion = MXTRAIN_VERSION;
constexpr int kMaxThreads = 1024;

void DeclareCommonFlags(CLI::App& app, commands::CommonFlags* flags) {
  app.add_flag("--json", flags->json, "only JSON on stdout");
  app.add_flag("-v,--verbose", flags->verbose, "say more");
  app.add_flag("-q,--quiet", flags->quiet, "say only warnings and errors");
  app.add_option("--device", flags->device, "auto, cpu, gpu or gpu:N")->capture_default_str();
  app.add_option("--seed", flags->seed, "seed, in place of the configuration's");
  app.add_option("--threads", flags->threads, "threads that compute; 0: as many as the process may use")->check(CLI::Range(0, kMaxThreads));
  app.add_option("--engine", flags->engine, "threaded, or naive: one function after the other, for debugging")
      ->check(CLI::IsMember({"threaded", "naive"}))->capture_default_str();
  app.add_flag("--deterministic", flags->deterministic, "only kernels that repeat bit for bit");
  app.add_option("--color", flags->color, "auto, always or never")->check(CLI::IsMember({"auto", "always", "never"}))->capture_default_str();
  app.add_option("--progress", flags->progress, "auto, bar, lines or none")->check(CLI::IsMember({"auto", "bar", "lines", "none"}))->capture_default_str();
  app.add_option("--plugin", flags->plugins, "a shared object with operators; may repeat")->type_name("FILE")->allow_extra_args(false);
}

report::ConsoleOptions ToConsoleOptions(const commands::CommonFlags& flags) {
  report::ConsoleOptions options;
  options.color = flags.color == "always" ? report::Choice::kAlways : flags.color == "never" ? report::Choice::kNever : report::Choice::kAuto;
  options.progress = flags.progress == "bar"     ? report::Progress::kBar
                     : flags.progress == "lines" ? report::Progress::kLines
                     : flags.progress == "none"  ? report::Progress::kNone
                                                 : report::Progress::kAuto;
  options.quiet = flags.quiet;
  options.verbose = flags.verbose;
  return options;
}

// Help that begins with examples: CLI11's footers, put before the usage.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "\n" + app->get_footer() + "\n\n" + CLI::Formatter::make_usage(app, std::move(name));
  }
  std::string make_footer(const CLI::App*) const override { return ""; }
};

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string Unknown(const char* what, const std::string& word, const std::vector<std::string>& known, const std::string& help) {
  const std::string guess = DidYouMean(word, known);
  return format("there is no {} '{}'{} `{}` lists them", what, word, guess.empty() ? ";" : guess, help);
}

// What does not parse, in one line, with the nearest word that would.
std::string UsageText(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error) {
  if (words.empty()) return "say a command; `mxtrain --help` lists them";
  const CLI::App* named = nullptr;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!words.empty() && words[0] == sub->get_name()) named = sub;
  }
  if (!named && !words.empty() && !words[0].starts_with("-")) {
    return Unknown("command", words[0], CommandNames(app), "mxtrain --help");
  }
  std::vector<std::string> flags = FlagNames(app);
  if (named) {
    for (std::string& name : FlagNames(*named)) flags.push_back(std::move(name));
  }
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--") || flag == "--" || std::find(flags.begin(), flags.end(), flag) != flags.end()) continue;
    return Unknown("flag", flag, flags, format("mxtrain{} --help", named ? " " + named->get_name() : ""));
  }
  return error.what();
}

int ReportError(const commands::CommonFlags& flags, report::Console& console, const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const config::DiagnosticError& e) {
    std::cerr << e.what();
    if (flags.json) std::cout << Json{{"error", "configuration"}, {"code", 3}, {"diagnostics", Json::parse(e.Json())}}.dump() << std::endl;
    return static_cast<int>(e.kind());
  } catch (const Error& e) {
    console.Message(LogLevel::kError, e.what());
    if (flags.json) std::cout << Json{{"error", e.what()}, {"code", static_cast<int>(e.kind())}}.dump() << std::endl;
    return static_cast<int>(e.kind());
  } catch (const std::filesystem::filesystem_error& e) {
    console.Message(LogLevel::kError, e.what());
    return static_cast<int>(ErrorKind::kFileSystem);
  } catch (const std::bad_alloc&) {
    console.Message(LogLevel::kError, "out of memory; lower data.batch_size");
    return static_cast<int>(ErrorKind::kMemory);
  } catch (const std::exception& e) {
    console.Message(LogLevel::kError, format("a bug in the program: {}", e.what()));
    return static_cast<int>(ErrorKind::kBug);
  }
}

// By default a thread of OpenMP's team waits busily for the others for milliseconds. Where other work shares the cores, the one that is
// waited for is often not running, and its core is the one that the wait burns: a step of small layers becomes 30 times slower
// (lib/docs/decisions/0014-barriers-sleep.md). The runtime reads the bound from the environment before main, so the program begins anew.
void BoundBarrierSpin(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);  // some microseconds, then sleep
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  execv(program.c_str(), argv);  // where it fails, the run is only slower
}

}  // namespace

int main(int argc, char** argv) {
  // A closed stdout (`| head`) ends quietly.
  std::signal(SIGPIPE, SIG_DFL);
  std::string command_line;
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    command_line += (i ? " " : "") + std::string(argv[i]);
    if (i) words.emplace_back(argv[i]);
  }

  CLI::App app{"Trains neural networks from a shell.", "mxtrain"};
  app.footer("Examples:\n  mxtrain train configs/mnist/lenet.yaml\n  mxtrain eval runs/latest\n  mxtrain infer runs/latest FOLDER\n"
             "  mxtrain plan configs/imagenet/resnet50.yaml data.batch_size=64");
  app.set_version_flag("--version", [] { return commands::VersionText(kVersion); });
  app.formatter(std::make_shared<ExamplesFirst>());  // before the commands, which take it over
  app.require_subcommand(1);
  app.fallthrough();
  commands::CommonFlags flags;
  DeclareCommonFlags(app, &flags);

  std::vector<std::unique_ptr<commands::Command>> all;
  all.push_back(commands::MakeInit());
  all.push_back(commands::MakeTrain(command_line));
  all.push_back(commands::MakeEval());
  all.push_back(commands::MakeInfer());
  all.push_back(commands::MakeCheck());
  all.push_back(commands::MakePlan());
  all.push_back(commands::MakeBench());
  all.push_back(commands::MakeOps());
  all.push_back(commands::MakeDevices());
  all.push_back(commands::MakeSynth());
  std::vector<CLI::App*> subs;
  for (auto& command : all) subs.push_back(command->Declare(app));

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "error: " << UsageText(app, words, e) << "\n";
    return static_cast<int>(ErrorKind::kUsage);
  }

  BoundBarrierSpin(argv);
  report::Console console(ToConsoleOptions(flags));
  try {
    for (size_t i = 0; i < all.size(); ++i) {
      if (subs[i]->parsed()) return all[i]->Run(flags, console);
    }
  } catch (...) {
    return ReportError(flags, console, std::current_exception());
  }
  return static_cast<int>(ErrorKind::kBug);
}
