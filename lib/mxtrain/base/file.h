#pragma once
// Whole files: read, and written so that a reader sees the old one or the new one, never a part.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Why a call of the system failed (errno), with what to do about it where that is always the same: "No space left on device; make room there".
MXTRAIN_API std::string ReasonOf(int error);
// Both throw kFileSystem (kData for a damaged .gz) with path and reason.
MXTRAIN_API std::string ReadFile(const std::string& path);
// As ReadFile, unpacked where the bytes are gzip; stops with kData above `max_bytes` of output.
MXTRAIN_API std::string ReadMaybeGzip(const std::string& path, size_t max_bytes);
// Writes beside the target, syncs, renames over it, and syncs the folder.
MXTRAIN_API void WriteFileAtomically(const std::string& path, std::string_view bytes);
// Removes from a folder what WriteFileAtomically left there when its process was killed: files NAME.tmp-PID of processes that are no more.
// Returns how many; a folder that is not there holds none. Processes of other machines cannot be seen: call it where one machine writes.
MXTRAIN_API int RemoveAbandonedFiles(const std::string& folder);

// XXH3-64 of the bytes.
MXTRAIN_API uint64_t Checksum(std::string_view bytes);

}  // namespace mxtrain
