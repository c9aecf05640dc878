// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/encode_texts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/text_files.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostReadBytes = size_t{1} << 20;  // of a file that is not mapped
constexpr size_t kPartBytes = size_t{1} << 20;
constexpr size_t kPartsOfThread = 4;  // that wait for the others, or for being put

// A part of a file that is to be encoded.
struct TextPart {
  std::shared_ptr<const TextFile> file;
  std::string_view text;
  EncodedPart to;
};

// Takes the files apart, one after another.
class TextParts {
 public:
  TextParts(const text::Tokenizer& tokenizer, std::span<const std::string> paths)
      : tokenizer_(tokenizer), paths_(paths) {}

  // False after the last one.
  bool Next(TextPart* part) {
    if (!file_) {
      if (next_ == paths_.size()) return false;
      file_ = std::make_shared<const TextFile>(paths_[next_++]);
      rest_ = file_->text();
    }
    *part = {file_, rest_.substr(0, BytesOfPart()), {}};
    rest_.remove_prefix(part->text.size());
    part->to.file = next_ - 1;
    part->to.bytes = std::ssize(part->text);
    part->to.last = rest_.empty();
    if (part->to.last) file_.reset();
    return true;
  }

 private:
  // Where nothing can be cut, twice as much is tried.
  size_t BytesOfPart() const {
    for (size_t bytes = kPartBytes; bytes < rest_.size(); bytes *= 2) {
      if (const size_t cut = tokenizer_.LastCut(rest_.substr(0, bytes)); cut > 0) return cut;
    }
    return rest_.size();
  }

  const text::Tokenizer& tokenizer_;
  const std::span<const std::string> paths_;
  size_t next_ = 0;  // of paths_
  std::shared_ptr<const TextFile> file_;
  std::string_view rest_;  // of file_
};

void EncodeParts(const text::Tokenizer& tokenizer, std::span<const std::string> paths,
                 std::vector<TextPart>* parts) {
  std::atomic<size_t> next{0};
  Mutex mutex;
  std::exception_ptr error;
  size_t failed = parts->size();  // the first part with an error
  const auto work = [&] {
    for (size_t i = next++; i < parts->size(); i = next++) {
      TextPart& part = (*parts)[i];
      try {
        EncodeFile(tokenizer, part.text, paths[part.to.file], &part.to.ids);
      } catch (...) {
        MutexLock lock(mutex);
        if (i < failed) error = std::current_exception(), failed = i;
        return;
      }
    }
  };
  const auto workers = std::min<size_t>(parts->size(), static_cast<size_t>(UsableCpuCount()));
  ThreadGroup threads([&] { next = parts->size(); });
  for (size_t i = 1; i < workers; ++i) threads.Start(work);
  work();
  threads.Join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

TextFile::TextFile(const std::string& path) {
  std::error_code none;
  const bool large = fs::is_regular_file(path, none) && fs::file_size(path, none) > kMostReadBytes;
  if (large) {
    mapped_.emplace(path);
  } else {
    read_ = ReadFile(path);
  }
}

void EncodeTexts(const text::Tokenizer& tokenizer, std::span<const std::string> paths,
                 const std::function<void(EncodedPart&&)>& put) {
  const size_t most = kPartsOfThread * static_cast<size_t>(UsableCpuCount());
  TextParts all(tokenizer, paths);
  std::vector<TextPart> parts;
  for (TextPart part; all.Next(&part);) {
    parts.push_back(std::move(part));
    if (parts.size() < most) continue;
    EncodeParts(tokenizer, paths, &parts);
    for (TextPart& done : parts) put(std::move(done.to));
    parts.clear();
  }
  EncodeParts(tokenizer, paths, &parts);
  for (TextPart& done : parts) put(std::move(done.to));
}

}  // namespace mxtrain::io
