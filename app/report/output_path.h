// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a command may write: it never replaces what it reads, and other files of the user only when
// asked to (--overwrite).
#include <span>
#include <string>

namespace mxtrain::report {

// Throws kUsage if `written` is one of the files `read`, under whatever name, or what a run among
// them writes into its folder. "" and "-" are none.
void RequireNotRead(const std::string& written, std::span<const std::string> read);

// The same, and throws kFileSystem if `written` exists and may not be overwritten.
void RequireFree(const std::string& written, std::span<const std::string> read, bool overwrite);

}  // namespace mxtrain::report
