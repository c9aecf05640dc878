// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the program as a child process: a run may fail, run out of memory or be killed without
// ending its parent.
#include <string>
#include <vector>

namespace mxtrain::commands {

// Runs `mxtrain ARGUMENT...` and waits. Its stdout is dropped, its stderr is ours. A signal that
// asks us to stop (command.h, CatchSignals) is passed on once; the child also ends, after saving,
// when we are killed. Returns its exit code, 128 + N where signal N ended it. Throws kFileSystem if
// it cannot be started.
int RunChild(const std::vector<std::string>& arguments);

}  // namespace mxtrain::commands
