// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of files that `infer` writes, made of the names of its inputs.
#include <filesystem>
#include <string>

namespace mxtrain::inference {

// A file's name of these two parts. Names too long for the file system are truncated in the first
// part and made unique by a checksum of it.
std::string Shortened(const std::string& stem, const std::string& end);

// The name of a class, a head or a row as that of a folder or file.
std::string FileName(std::string name);

// Where below a folder that which is made of an example is written, without an ending: where its
// file is, below `root` ("": as it was given), without steps upwards; for one without a file (""),
// by its name.
std::filesystem::path StemBelow(const std::string& file, const std::string& name,
                                const std::string& root = "");

}  // namespace mxtrain::inference
