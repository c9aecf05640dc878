// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is on disk of a token file FILE before it is complete, so that another process can continue
// after the one that wrote it was killed. Two files stand beside it:
//
//   FILE.partial   header, text and the tokens so far, as in token_file.h
//   FILE.journal   entries
//
// An entry: u64 bytes of its fields, u64 checksum of them, and the fields; a field: u64 bytes, and
// these bytes. The fields of the first entry are "MXTOKENJ", request and text of the tokenizer. Of
// each other they are: place; u64 tokens, u64 checksum of those behind the last whole block, u64
// number of ends; the u64 ends of documents and checksums of blocks since the entry before. Its
// tokens were on disk before it.
//
// Numbers are little-endian, checksums XXH3-64. An entry that is incomplete or damaged ends the
// journal.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::text {

// Owns the two files: no other process may write or continue them (flock on the journal). Serves
// one thread at a time.
class MXTRAIN_API PartialTokens {
 public:
  // What the journal says of the last moment that it tells.
  struct Recorded {
    std::string request;         // what the tokens are made of, in the words of who began
    std::string tokenizer_text;  // Tokenizer::ToText
    std::string place;           // where the next token comes from, in the same words
    uint64_t tokens = 0, rest_sum = 0;
    std::vector<uint64_t> ends, sums;
  };

  // `path`: of the token file. Throws kFileSystem if that cannot be written there, or another
  // process is writing it.
  explicit PartialTokens(std::string path);
  // Removes a journal that tells nothing, and the tokens with it.
  ~PartialTokens();
  PartialTokens(const PartialTokens&) = delete;
  PartialTokens& operator=(const PartialTokens&) = delete;

  const std::string& path() const { return path_; }
  std::string partial_path() const { return path_ + ".partial"; }
  // None if there is nothing to continue.
  const std::optional<Recorded>& recorded() const { return recorded_; }

  // Removes what is recorded.
  void Discard();

 private:
  friend class TokenFileWriter;
  class Lock;

  std::string journal_path() const { return path_ + ".journal"; }
  void ReadJournal();

  const std::string path_;
  std::unique_ptr<const Lock> lock_;
  std::optional<Recorded> recorded_;
  int64_t journal_bytes_ = 0;  // of the good entries
  bool keep_ = false;          // the files tell something, and stay
};

}  // namespace mxtrain::text
