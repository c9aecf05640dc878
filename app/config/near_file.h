// SPDX-License-Identifier: Apache-2.0
#pragma once
// "did you mean ...?" for the names of files and folders that a user has written.
#include <string>

namespace mxtrain::config {

// "; did you mean 'runs/photos-0001'?" for a path to nothing: the first folder or file of it that
// does not exist gets the nearest name beside it (Nearest, base/suggest.h), and the rest must then
// be there. "" if nothing is near. Hidden entries, and those of a folder with more than 10,000, are
// not looked at, and for data (kData) configurations are not either: photos.yaml was written for
// the folder photos, and is not what was meant by it.
enum class NearFiles { kAny, kData };
std::string DidYouMeanFile(const std::string& path, NearFiles wanted = NearFiles::kAny);

}  // namespace mxtrain::config
