// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens of a corpus in one file, to be mapped into memory. Numbers are little-endian:
//
//   header     64 bytes: magic "MXTOKENS", u32 version 1, u32 bytes of a token (2 or 4), u64
//              vocabulary size, u64 bytes of the tokenizer's text, u64 checksum of that text, u64
//              bytes that a checksum covers, u64 zero, u64 checksum of the header up to here
//   text       of the tokenizer (Tokenizer::ToText), then zeros up to a multiple of 64
//   tokens     u16 where the vocabulary has at most 65,536 tokens, else u32; zeros up to 8
//   index      u64 end of each document in tokens, rising; u64 checksum of each block of tokens
//   trailer    48 bytes: magic "MXTOKEND", u64 tokens, u64 documents, u64 checksum of the index,
//              u64 checksum of the header and of the text with its zeros, u64 checksum of the
//              trailer up to here
//
// Checksums are XXH3-64. All but the tokens is checked when a file is opened, a block of tokens
// when one of them is read first; every byte of the file is covered.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/file.h"
#include "mxtrain/base/macros.h"
#include "mxtrain/base/mapped_file.h"
#include "mxtrain/text/partial_tokens.h"
#include "mxtrain/text/tokenizer.h"

namespace mxtrain::text {

// Writes a file that appears whole at Commit, or not at all. With a request, what is written can be
// continued by another process from the last call of Record.
class MXTRAIN_API TokenFileWriter {
 public:
  TokenFileWriter(const std::string& path, const Tokenizer& tokenizer);
  // `request`: what the tokens are made of, "" if nobody can continue. Continues what is recorded,
  // if anything is; its request and the text of its tokenizer must be these (kUsage). Throws kData
  // if the tokens are not those that were recorded.
  TokenFileWriter(std::unique_ptr<PartialTokens> partial, const Tokenizer& tokenizer,
                  std::string_view request);
  ~TokenFileWriter();  // without Commit and Record: removes what was written
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  // Adds tokens to the current document. Throws kData for an id outside the vocabulary.
  void Add(std::span<const TokenId> ids);
  // The current document ends here; it may be empty.
  void EndDocument();
  // All that was added is on disk when it returns, and another process can continue behind it;
  // `place` says where in the texts that is. Does nothing without a request.
  void Record(std::string_view place);
  // Removes what was recorded; nothing may be added afterwards.
  void Discard();
  // Ends a document that has tokens and is not ended. Nothing may be added afterwards.
  void Commit();
  uint64_t tokens() const { return tokens_; }
  uint64_t documents() const { return ends_.size(); }

 private:
  void Begin(const Tokenizer& tokenizer, std::string_view request, const std::string& front);
  void Continue(const Tokenizer& tokenizer, std::string_view request, const std::string& front);
  void WriteBlock();
  void WriteRest();

  const std::unique_ptr<PartialTokens> partial_;
  std::optional<FileAppender> file_, journal_;  // set by the constructor
  const uint64_t vocabulary_size_;
  const size_t width_;
  uint64_t front_sum_ = 0;  // of header, text and zeros
  std::string block_;       // the tokens behind the last whole block
  size_t written_ = 0;      // of its bytes
  std::vector<uint64_t> sums_, ends_;
  size_t recorded_sums_ = 0, recorded_ends_ = 0;
  uint64_t tokens_ = 0;
};

// A token file, mapped: it may be larger than memory. Every call may come from any thread.
class MXTRAIN_API TokenFile {
 public:
  // Throws kData for a file that is foreign, truncated, or damaged outside the tokens.
  explicit TokenFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t tokens() const { return tokens_; }
  uint64_t documents() const { return documents_; }
  uint64_t vocabulary_size() const { return vocabulary_size_; }
  size_t width() const { return width_; }  // bytes of a token
  std::string_view tokenizer_text() const { return text_; }
  uint64_t tokenizer_checksum() const { return text_sum_; }
  // Made from the text with each call.
  TokenizerPtr NewTokenizer() const;

  // The tokens [begin, begin + ids.size()). Throws kUsage for a range outside the file, kData for a
  // damaged block and a token outside the vocabulary, with its place.
  void Read(uint64_t begin, std::span<TokenId> ids) const;
  // Where a document begins; BeginOf(documents()) is the number of tokens.
  uint64_t BeginOf(uint64_t document) const;

  // Compares all blocks with their checksums and tokens with the vocabulary; a sentence for each
  // damage, with its place.
  std::vector<std::string> Verify() const;

 private:
  uint64_t IndexAt(uint64_t entry) const;
  TokenId TokenAt(uint64_t index) const;
  // What is damaged in a block of tokens, with its place; "" if nothing is.
  std::string DamageOf(uint64_t block) const;

  MappedFile file_;
  size_t width_ = 0;
  uint64_t vocabulary_size_ = 0, block_bytes_ = 0, tokens_ = 0, documents_ = 0, text_sum_ = 0;
  std::string_view text_, data_, index_;
  std::unique_ptr<std::atomic<bool>[]> whole_;  // the blocks that were found undamaged
};

// What is damaged in a file, whether it can be opened or not: the error of opening it, or what
// Verify finds. Throws kFileSystem for a file that cannot be read.
MXTRAIN_API std::vector<std::string> VerifyTokenFile(const std::string& path);

}  // namespace mxtrain::text
