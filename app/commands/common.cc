#include <csignal>
#include <cstdlib>

#include "app/commands/command.h"

namespace mxtrain::commands {
namespace {

std::atomic<int> stop_flag{0};
std::atomic<int> stop_signal{0};

void OnSignal(int signal) {
  if (signal == SIGUSR1) {
    int none = 0;
    stop_flag.compare_exchange_strong(none, 2);
    return;
  }
  if (stop_signal != 0) std::_Exit(128 + signal);  // the second one: at once
  stop_signal = signal;
  stop_flag = 1;
}

}  // namespace

void ConfigArguments::Declare(Arguments& arguments, bool required) {
  Argument config = arguments.Option("config", &file, "configuration file (YAML)").Takes("CONFIG");
  if (required) config.Required();
  arguments.Option("overrides", &overrides, "values that override the configuration: train.optimizer.lr=0.1").Takes("key=value");
  arguments.Option("-c", &more_files, "a further configuration file, merged over the first; may repeat").Takes("FILE").Repeats();
}

std::atomic<int>& StopFlag() { return stop_flag; }
int StopSignal() { return stop_signal; }

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

}  // namespace mxtrain::commands
