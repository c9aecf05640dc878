// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files from elsewhere, kept in a cache folder. A download is announced with its size before its
// first byte; what has come of one that was broken off is continued; a file is in the cache whole
// or not at all. One process at a time downloads a file, others wait for it.
#include <cstdint>
#include <functional>
#include <string>

#include "app/console/console.h"
#include "mxtrain/base/error.h"

namespace mxtrain::fetch {

struct FetchOptions {
  std::string cache_dir;        // "": DefaultCacheDir()
  bool offline = false;         // only what is in the cache
  int64_t max_bytes = 0;        // of the file; 0: no limit
  std::string sha256;           // of the file, in hexadecimal digits; "": any
  std::function<bool()> stops;  // whether to break off
};

// A signal broke a download off; what has come is kept.
class StoppedError : public Error {
 public:
  explicit StoppedError(const std::string& message) : Error(ErrorKind::kFileSystem, message) {}
};

// As the environment has them: MXTRAIN_CACHE_DIR, else mxtrain in XDG_CACHE_HOME, else
// ~/.cache/mxtrain; MXTRAIN_OFFLINE; MXTRAIN_MAX_DOWNLOAD, else 4 GiB. Throws kUsage where there is
// no home, and for a limit that is not a size.
FetchOptions OptionsOfEnvironment();

// The path of the file at an address (app/config/address.h; HF_ENDPOINT in place of the hub),
// downloaded if it is not in the cache. Throws kConfig for an invalid address and a build without
// downloads; kFileSystem if the file does not come, or is not in the cache and `offline`; kData if
// it is larger than allowed, or its SHA-256 is another; StoppedError.
std::string FetchFile(const std::string& address, const FetchOptions& options,
                      console::Console& console);

// Throws kData if the SHA-256 of a file is not this one, kConfig if that is no SHA-256.
void CheckSha256(const std::string& path, const std::string& sha256);

}  // namespace mxtrain::fetch
