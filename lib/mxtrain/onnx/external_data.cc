// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/internal/external_data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"

namespace mxtrain::onnx {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostShared = 4;
constexpr int64_t kBlock = int64_t{1} << 20;

// Skips to `offset`, which is not before *at, the position of the reader, and reads the bytes.
std::string ReadAt(FileReader& file, int64_t offset, int64_t bytes, int64_t* at) {
  std::string skipped;
  while (*at < offset) {
    skipped.resize(static_cast<size_t>(std::min(kBlock, offset - *at)));
    const size_t count = file.Read(skipped);
    if (count == 0) break;
    *at += static_cast<int64_t>(count);
  }
  std::string read(static_cast<size_t>(bytes), '\0');
  const size_t count = file.Read(read);
  *at += static_cast<int64_t>(count);
  if (count != read.size()) Throw(ErrorKind::kData, "the file became shorter");
  return read;
}

}  // namespace

void ExternalPlace::Set(const std::string& key, const std::string& value, const std::string& what) {
  if (key == "location") location = value;
  if (key != "offset" && key != "length") return;
  int64_t number = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (status != std::errc() || end != value.data() + value.size() || number < 0)
    Throw(ErrorKind::kData, "{}: its {} in another file is '{}', not a number from 0", what, key,
          value);
  (key == "offset" ? offset : length) = number;
}

std::string ExternalData::Locate(const std::string& location, const std::string& what) const {
  if (folder_.empty())
    Throw(ErrorKind::kData, "{} lies in another file, '{}', which cannot be read here", what,
          location);
  const fs::path path(location);
  const bool inside = !location.empty() && path.is_relative() &&
                      std::find(path.begin(), path.end(), "..") == path.end() &&
                      location.find('\0') == std::string::npos;
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error)
    Throw(ErrorKind::kFileSystem, "cannot find the folder {} of the model: {}", folder_,
          error.message());
  const fs::path found = inside ? fs::weakly_canonical(folder / path, error) : fs::path();
  const auto [rest, unused] =
      std::mismatch(folder.begin(), folder.end(), found.begin(), found.end());
  if (!inside || error || rest != folder.end()) {
    Throw(ErrorKind::kData,
          "{} lies in '{}', which is not in the folder of the model; only files of {} are read",
          what, location, folder_);
  }
  return found.string();
}

void ExternalData::Add(const ExternalPlace& place, int64_t bytes, const std::string& what,
                       std::string* to) {
  if (place.length >= 0 && place.length != bytes)
    Throw(ErrorKind::kData, "{} has {} bytes, but {} of them in '{}'", what, bytes, place.length,
          place.location);
  parts_[Locate(place.location, what)].push_back({place.offset, bytes, what, to});
}

void ExternalData::ReadAll() {
  for (auto& [path, parts] : parts_) {
    FileReader file(path);
    const auto size = static_cast<int64_t>(file.size());
    int64_t sum = 0;
    for (const Part& part : parts) {
      if (part.offset > size || part.bytes > size - part.offset) {
        Throw(ErrorKind::kData, "{} should be {} bytes at {} of {}, which has only {} bytes",
              part.what, part.bytes, part.offset, path, size);
      }
      sum += part.bytes;
    }
    if (sum > kMostShared * size)
      Throw(ErrorKind::kData, "the arrays in {} have {} bytes, but the file only {}", path, sum,
            size);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.offset < b.offset; });
    int64_t at = 0;
    for (size_t i = 0; i < parts.size();) {
      // Parts that overlap are read at once: the file is read once, and not for each of them.
      const int64_t begin = parts[i].offset;
      int64_t end = begin + parts[i].bytes;
      size_t next = i + 1;
      for (; next < parts.size() && parts[next].offset < end; ++next)
        end = std::max(end, parts[next].offset + parts[next].bytes);
      try {
        std::string bytes = ReadAt(file, begin, end - begin, &at);
        for (size_t part = i; part < next && next > i + 1; ++part)
          parts[part].to->assign(bytes, static_cast<size_t>(parts[part].offset - begin),
                                 static_cast<size_t>(parts[part].bytes));
        if (next == i + 1) *parts[i].to = std::move(bytes);
      } catch (const Error&) {
        RethrowWithPrefix(std::current_exception(), path);
      }
      i = next;
    }
  }
}

}  // namespace mxtrain::onnx
