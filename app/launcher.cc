// SPDX-License-Identifier: Apache-2.0
// The installed bin/mxtrain: starts the program, which lies at MXTRAIN_TO_PROGRAM from its own
// folder, so that the loader finds the program's libraries by their place beside it ($ORIGIN),
// wherever the installed folder was put or moved to. Without /proc the loader knows that place from
// LD_ORIGIN_PATH alone, which has to be set before the program starts. Needs no library but libc.
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int, char** argv) {
  constexpr int kCannotStart = 126;  // as in shells
  char own[PATH_MAX] = "", path[2 * PATH_MAX] = "", program[PATH_MAX] = "";
  const bool has_proc = realpath("/proc/self/exe", own) != nullptr;
  // Else the path by which the kernel was told to start it.
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (!has_proc && (!started || !realpath(started, own))) {
    std::fprintf(stderr, "mxtrain: cannot tell where it is installed, without /proc: %s\n",
                 std::strerror(errno));
    return kCannotStart;
  }
  *std::strrchr(own, '/') = '\0';  // the folder
  std::snprintf(path, sizeof path, "%s/%s", own, MXTRAIN_TO_PROGRAM);
  if (!realpath(path, program)) {
    std::fprintf(stderr, "mxtrain: %s: %s; install it anew, or move the whole folder\n", path,
                 std::strerror(errno));
    return kCannotStart;
  }
  if (!has_proc) {
    std::snprintf(path, sizeof path, "%s", program);
    *std::strrchr(path, '/') = '\0';
    setenv("LD_ORIGIN_PATH", path, 1);
  }
  execv(program, argv);
  std::fprintf(stderr, "mxtrain: cannot start %s: %s\n", program, std::strerror(errno));
  return kCannotStart;
}
