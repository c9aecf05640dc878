// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <deque>

#include "app/commands/command.h"
#include "app/commands/last_line.h"

namespace mxtrain::commands {
namespace {

std::atomic<int> stop_flag{0};
std::atomic<int> stop_signal{0};
std::atomic<int64_t> stop_time{0};  // of the first one, in nanoseconds
std::atomic<const std::string*> last_line{nullptr};

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void OnSignal(int signal) {
  if (signal == SIGUSR1) {
    int none = 0;
    stop_flag.compare_exchange_strong(none, 2);
    return;
  }
  // timeout(1) and service managers signal the process and its group: one signal arrives twice.
  constexpr int64_t kSame = 200'000'000;
  if (stop_signal != 0) {
    if (Now() - stop_time <= kSame) return;
    // The second one: at once.
    if (const std::string* line = last_line)
      static_cast<void>(write(STDERR_FILENO, line->data(), line->size()) + 1);
    std::_Exit(128 + signal);
  }
  stop_time = Now();
  stop_signal = signal;
  stop_flag = 1;
}

}  // namespace

void ConfigArguments::Declare(Arguments& arguments, bool required) {
  Argument config = arguments.Option("config", &file, "configuration file (YAML)").Takes("CONFIG");
  if (required) config.Required();
  arguments
      .Option("overrides", &overrides,
              "values that override the configuration: train.optimizer.lr=0.1")
      .Takes("key=value");
  arguments
      .Option("-c", &more_files,
              "another configuration file, merged over the first; may be repeated")
      .Takes("FILE")
      .Repeats();
}

std::vector<std::string> ConfigArguments::Files() const {
  std::vector<std::string> files = {file};
  files.insert(files.end(), more_files.begin(), more_files.end());
  return files;
}

void DeclarePlaces(Arguments& arguments, std::vector<std::string>* places) {
  arguments
      .Option("--place", places,
              "compute the layers with this ctx_group on another device, such as encoder=cpu(1) or "
              "encoder=gpu:1; may be repeated")
      .Takes("GROUP=DEVICE")
      .Repeats();
}

std::atomic<int>& StopFlag() {
  return stop_flag;
}
int StopSignal() {
  return stop_signal;
}

void SayWhenKilled(std::string line) {
  static std::deque<std::string> lines;  // its elements stay where they are
  lines.push_back("\n" + std::move(line) + "\n");
  last_line = &lines.back();
}

void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  // nohup asks to ignore it.
  if (hang_up.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

}  // namespace mxtrain::commands
