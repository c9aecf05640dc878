// SPDX-License-Identifier: Apache-2.0
#include "app/commands/child_run.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "app/commands/command.h"
#include "mxtrain/base/error.h"

namespace mxtrain::commands {
namespace {

constexpr int kCannotStart = 126;  // as in shells

// In the child; never returns. Uses a separate process group: a terminal's Ctrl-C must not reach it
// twice.
[[noreturn]] void Become(const std::vector<char*>& argv) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO);
  execv("/proc/self/exe", argv.data());
  // Without /proc: as this process was started.
  execv(reinterpret_cast<const char*>(getauxval(AT_EXECFN)), argv.data());
  _exit(kCannotStart);
}

}  // namespace

int RunChild(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"mxtrain"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) Throw(ErrorKind::kFileSystem, "cannot start a process: {}", std::strerror(errno));
  if (child == 0) Become(argv);
  bool told = false;
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotStart)
        Throw(ErrorKind::kFileSystem, "cannot start {} as a process of its own",
              reinterpret_cast<const char*>(getauxval(AT_EXECFN)));
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (StopFlag() == 1 && !told) {
      kill(child, StopSignal());
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace mxtrain::commands
