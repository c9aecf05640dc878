// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/text/internal/journal_entry.h"
#include "mxtrain/text/internal/token_layout.h"
#include "mxtrain/text/token_file.h"

namespace mxtrain::text {
namespace {

// Header, text and zeros.
std::string FrontOf(const Tokenizer& tokenizer) {
  const std::string text = tokenizer.ToText();
  TokenHeader header{};
  std::memcpy(header.magic, kTokenMagic.data(), sizeof header.magic);
  header.version = kTokenVersion;
  header.vocabulary_size = static_cast<uint64_t>(tokenizer.vocabulary_size());
  header.width = WidthOfTokens(header.vocabulary_size);
  header.text_bytes = text.size();
  header.text_sum = Checksum(text);
  header.block_bytes = kBlockBytes;
  header.checksum = SumOfRecord(header);
  std::string front = std::string(BytesOfRecord(header)) + text;
  front.resize(RoundUp(front.size(), kTokenAlignment));
  return front;
}

// What stands behind the first `bytes` of a file was written after the last entry of the journal.
void TruncateTokens(const std::string& path, uint64_t bytes) {
  const FileDescriptor file(path, O_WRONLY | O_NOFOLLOW, "write");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    Throw(ErrorKind::kFileSystem, "cannot write {}: {}", path, ReasonOf(errno));
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::string& path, const Tokenizer& tokenizer)
    : TokenFileWriter(std::make_unique<PartialTokens>(path), tokenizer, "") {}

TokenFileWriter::TokenFileWriter(std::unique_ptr<PartialTokens> partial, const Tokenizer& tokenizer,
                                 std::string_view request)
    : partial_(std::move(partial)),
      vocabulary_size_(static_cast<uint64_t>(tokenizer.vocabulary_size())),
      width_(WidthOfTokens(vocabulary_size_)) {
  const std::string front = FrontOf(tokenizer);
  front_sum_ = Checksum(front);
  if (partial_->recorded()) {
    Continue(tokenizer, request, front);
  } else {
    Begin(tokenizer, request, front);
  }
}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::Begin(const Tokenizer& tokenizer, std::string_view request,
                            const std::string& front) {
  partial_->Discard();
  file_.emplace(partial_->partial_path(), FileAppender::Begin::kNew);
  file_->Append(front);
  if (request.empty()) return;
  journal_.emplace(partial_->journal_path());
  const std::string text = tokenizer.ToText();
  const std::string_view fields[] = {kJournalMagic, request, text};
  journal_->Append(JournalEntry(fields));
}

void TokenFileWriter::Continue(const Tokenizer& tokenizer, std::string_view request,
                               const std::string& front) {
  const PartialTokens::Recorded& recorded = *partial_->recorded();
  if (recorded.request != request || recorded.tokenizer_text != tokenizer.ToText())
    Throw(ErrorKind::kUsage, "{} was begun with another request", partial_->partial_path());
  const std::string& path = partial_->partial_path();
  const uint64_t data = recorded.tokens * width_, whole = data / kBlockBytes;
  {
    const MappedFile file(path);
    const auto check = [&](bool good) {
      if (!good)
        Throw(ErrorKind::kData,
              "{} is damaged: it does not hold the {} tokens that were written; remove it to begin "
              "again",
              path, recorded.tokens);
    };
    check(recorded.tokens <= file.bytes().size() && file.bytes().size() >= front.size() &&
          file.bytes().size() - front.size() >= data && file.bytes().starts_with(front) &&
          recorded.sums.size() == whole);
    const std::string_view tokens = file.bytes().substr(front.size(), data);
    for (uint64_t i = 0; i < whole; ++i)
      check(Checksum(tokens.substr(i * kBlockBytes, kBlockBytes)) == recorded.sums[i]);
    block_ = tokens.substr(whole * kBlockBytes);
    check(Checksum(block_) == recorded.rest_sum);
  }
  written_ = block_.size();
  tokens_ = recorded.tokens;
  sums_ = recorded.sums, ends_ = recorded.ends;
  recorded_sums_ = sums_.size(), recorded_ends_ = ends_.size();
  TruncateTokens(path, front.size() + data);
  TruncateTokens(partial_->journal_path(), static_cast<uint64_t>(partial_->journal_bytes_));
  file_.emplace(path);
  journal_.emplace(partial_->journal_path());
}

void TokenFileWriter::Add(std::span<const TokenId> ids) {
  for (const TokenId id : ids) {
    if (id >= vocabulary_size_)
      Throw(ErrorKind::kData, "{}: the id {} is outside the tokenizer's vocabulary of {}",
            partial_->path(), id, vocabulary_size_);
    block_.append(reinterpret_cast<const char*>(&id), width_);  // its low bytes come first
    ++tokens_;
    if (block_.size() == kBlockBytes) WriteBlock();
  }
}

void TokenFileWriter::EndDocument() {
  ends_.push_back(tokens_);
}

void TokenFileWriter::WriteRest() {
  file_->Append(std::string_view(block_).substr(written_));
  written_ = block_.size();
}

void TokenFileWriter::WriteBlock() {
  sums_.push_back(Checksum(block_));
  WriteRest();
  block_.clear();
  written_ = 0;
}

void TokenFileWriter::Record(std::string_view place) {
  if (!journal_) return;
  WriteRest();
  file_->Sync();
  std::vector<uint64_t> more(ends_.begin() + static_cast<std::ptrdiff_t>(recorded_ends_),
                             ends_.end());
  const uint64_t numbers[] = {tokens_, Checksum(block_), more.size()};
  more.insert(more.end(), sums_.begin() + static_cast<std::ptrdiff_t>(recorded_sums_), sums_.end());
  const std::string_view fields[] = {place, BytesOfNumbers(numbers), BytesOfNumbers(more)};
  journal_->Append(JournalEntry(fields));
  journal_->Sync();
  recorded_ends_ = ends_.size(), recorded_sums_ = sums_.size();
  partial_->keep_ = true;
}

void TokenFileWriter::Discard() {
  partial_->Discard();
}

void TokenFileWriter::Commit() {
  if (ends_.empty() ? tokens_ > 0 : ends_.back() != tokens_) EndDocument();
  if (!block_.empty()) WriteBlock();
  const uint64_t data = tokens_ * width_;
  file_->Append(std::string(RoundUp(data, sizeof(uint64_t)) - data, '\0'));
  TokenTrailer trailer{};
  std::memcpy(trailer.magic, kTrailerMagic.data(), sizeof trailer.magic);
  RunningChecksum index;
  for (const std::vector<uint64_t>* part : {&ends_, &sums_}) {
    index.Add(BytesOfNumbers(*part));
    file_->Append(BytesOfNumbers(*part));
  }
  trailer.tokens = tokens_;
  trailer.documents = ends_.size();
  trailer.index_sum = index.value();
  trailer.front_sum = front_sum_;
  trailer.checksum = SumOfRecord(trailer);
  file_->Append(BytesOfRecord(trailer));
  file_->Sync();
  RenameFile(partial_->partial_path(), partial_->path());
  partial_->Discard();
}

}  // namespace mxtrain::text
