// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a command may write: it never replaces what it reads, and other files of the user only when
// asked to (--overwrite). Every command asks here before it begins to work, for each file and
// folder whose name the user gives. A command's own folders (the folder of a run, its eval/,
// runs/NAME-lr-find) are replaced without being asked, and their help says so.
#include <span>
#include <string>

namespace mxtrain::report {

// Of files to be written; "" and "-" are none, and neither are pipes, devices and the process's own
// streams (/dev/stdout, /dev/fd/3), which are not replaced. Throws kUsage if one of them is among
// the files `read`, under whatever name, is what a run among those writes into its folder, or is
// named twice; kFileSystem if it exists, unless `overwrite`, or is a folder. `flag`: what names
// another file, "--output FILE", for that message; "" if an argument does.
void RequireFree(std::span<const std::string> written, std::span<const std::string> read,
                 bool overwrite, const std::string& flag = "");

// Of a folder to be filled with files whose names depend on the model. Throws kUsage if something
// `read` lies in it; kFileSystem if it is not empty, unless `overwrite`, or is a file.
void RequireFreeFolder(const std::string& folder, std::span<const std::string> read,
                       bool overwrite);

}  // namespace mxtrain::report
