// SPDX-License-Identifier: Apache-2.0
// Token files: what is written is read; every way to damage a small one.
#include "mxtrain/text/token_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/text/internal/token_layout.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;

// "" in place of the path.
std::string WithoutPath(std::string text, const std::string& path) {
  for (size_t at; (at = text.find(path)) != std::string::npos;) text.replace(at, path.size(), "");
  return text;
}

std::string WriteTokens(const TempDir& dir, const Tokenizer& tokenizer,
                        const std::vector<Ids>& documents) {
  TokenFileWriter writer(dir.path("a.tokens"), tokenizer);
  for (const Ids& document : documents) {
    writer.Add(document);
    writer.EndDocument();
  }
  writer.Commit();
  return dir.path("a.tokens");
}

Ids TokensIn(const TokenFile& file) {
  Ids ids(file.tokens());
  file.Read(0, ids);
  return ids;
}

// The damages that are found in a file with other bytes; paths removed.
std::vector<std::string> DamagesOf(const TempDir& dir, const std::string& bytes) {
  dir.Write("damaged", bytes);
  std::vector<std::string> damages = VerifyTokenFile(dir.path("damaged"));
  for (std::string& damage : damages) damage = WithoutPath(damage, dir.path("damaged"));
  return damages;
}

TEST_CASE("tokens and documents come back, with the tokenizer") {
  const TempDir dir;
  const TokenizerPtr bytes = MakeByteTokenizer();
  const std::string path = WriteTokens(dir, *bytes, {{1, 2, 255}, {}, {7}});
  const TokenFile file(path);
  CHECK(file.tokens() == 4);
  CHECK(file.documents() == 3);
  CHECK(file.width() == 2);
  CHECK(file.vocabulary_size() == 256);
  CHECK(TokensIn(file) == Ids{1, 2, 255, 7});
  CHECK(std::vector<uint64_t>{file.BeginOf(0), file.BeginOf(1), file.BeginOf(2), file.BeginOf(3)} ==
        std::vector<uint64_t>{0, 3, 3, 4});
  CHECK(file.tokenizer_text() == bytes->ToText());
  CHECK(file.tokenizer_checksum() == Checksum(bytes->ToText()));
  CHECK(file.NewTokenizer()->ToText() == bytes->ToText());
  CHECK(file.Verify().empty());
  Ids two(2);
  file.Read(1, two);
  CHECK(two == Ids{2, 255});
  CHECK(Says(MessageOf([&] { file.Read(3, two); }), "the tokens 3 to 5 are outside the file"));
  CHECK(Says(MessageOf([&] { file.BeginOf(4); }), "there is no document 4"));
}

TEST_CASE("many tokens of a large vocabulary in several blocks") {
  const TempDir dir;
  std::string corpus;
  for (int i = 0; i < 70'000; ++i) corpus += format("w{} ", i);
  const TokenizerPtr words = MakeWordTokenizer(corpus, {});
  Ids ids;
  for (uint32_t i = 0; i < 700'000; ++i) ids.push_back(i * 7919 % 70'002);
  const TokenFile file(WriteTokens(dir, *words, {ids, ids}));
  CHECK(file.width() == 4);
  CHECK(file.tokens() == 1'400'000);
  Ids read(700'000);
  file.Read(file.BeginOf(1), read);
  CHECK(read == ids);
  CHECK(file.Verify().empty());
}

TEST_CASE("a file without tokens, and a document that is not ended") {
  const TempDir dir;
  const TokenizerPtr bytes = MakeByteTokenizer();
  const TokenFile empty(WriteTokens(dir, *bytes, {}));
  CHECK(empty.tokens() + empty.documents() == 0);
  CHECK(empty.Verify().empty());
  TokenFileWriter writer(dir.path("b"), *bytes);
  writer.Add(Ids{1, 2});
  CHECK(Says(MessageOf([&] { writer.Add(Ids{256}); }), "the id 256 is outside"));
  CHECK_FALSE(std::filesystem::exists(dir.path("b")));
  writer.Commit();
  CHECK(TokenFile(dir.path("b")).documents() == 1);
}

TEST_CASE("every flipped bit is found, with its place") {
  const TempDir dir;
  const TokenizerPtr bytes = MakeByteTokenizer();
  const std::string whole = ReadFile(WriteTokens(dir, *bytes, {{1, 2, 3}, {4, 5}}));
  CHECK(DamagesOf(dir, whole).empty());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    CAPTURE(at);
    const std::vector<std::string> damages = DamagesOf(dir, damaged);
    REQUIRE(damages.size() == 1);
    const std::string& said = damages[0];
    // Header, tokenizer with its zeros, tokens, zeros, index, trailer.
    const size_t data = 64 + 64, zeros = data + 10, index = data + 16, trailer = index + 24;
    CHECK(bytes->ToText().size() <= 64);
    if (at < 8)
      CHECK(said == ": it is not a token file: it does not begin with MXTOKENS");
    else if (at < 12)
      CHECK(Says(said, "its version is"));
    else if (at < 64)
      CHECK(said == ": the header (bytes 0 to 63) is damaged: its checksum differs");
    else if (at < data)
      CHECK(said == ": the tokenizer (bytes 64 to 127) is damaged: its checksum differs");
    else if (at < zeros)
      CHECK(said == ": the tokens 0 to 4 (bytes 128 to 137) are damaged: their checksum differs");
    else if (at < index)
      CHECK(Says(said, "behind the tokens are damaged"));
    else if (at < trailer)
      CHECK(said == ": the index (bytes 144 to 167) is damaged: its checksum differs");
    else
      CHECK(said == ": it is truncated, or its trailer (bytes 168 to 215) is damaged");
  }
}

TEST_CASE("truncated, longer and foreign files are refused") {
  const TempDir dir;
  const std::string whole = ReadFile(WriteTokens(dir, *MakeByteTokenizer(), {{1, 2, 3}}));
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK(DamagesOf(dir, whole.substr(0, size)).size() == 1);
  CHECK(DamagesOf(dir, whole + "x").size() == 1);
  CHECK(DamagesOf(dir, whole + whole).size() == 1);
  CHECK(DamagesOf(dir, "{}")[0] == ": it is not a token file: it does not begin with MXTOKENS");
}

// The records of a file with other numbers and checksums that are right.
std::string Forged(std::string bytes,
                   const std::function<void(TokenHeader*, TokenTrailer*)>& forge) {
  TokenHeader header;
  TokenTrailer trailer;
  const size_t at = bytes.size() - sizeof trailer;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&trailer, bytes.data() + at, sizeof trailer);
  const size_t front = RoundUp(sizeof header + header.text_bytes, kTokenAlignment);
  forge(&header, &trailer);
  header.checksum = SumOfRecord(header);
  bytes.replace(0, sizeof header, BytesOfRecord(header));
  trailer.front_sum = Checksum(bytes.substr(0, front));
  trailer.checksum = SumOfRecord(trailer);
  return bytes.replace(at, sizeof trailer, BytesOfRecord(trailer));
}

TEST_CASE("numbers that promise more than the file has are refused before memory is taken") {
  const TempDir dir;
  const std::string whole = ReadFile(WriteTokens(dir, *MakeByteTokenizer(), {{1, 2, 3}}));
  for (const uint64_t huge : {uint64_t{9}, uint64_t{1} << 40, ~uint64_t{0}, uint64_t{1} << 63}) {
    CHECK(Says(DamagesOf(dir, Forged(whole, [&](auto*, auto* t) { t->tokens = huge; }))[0],
               "its size"));
    CHECK(Says(DamagesOf(dir, Forged(whole, [&](auto*, auto* t) { t->documents = huge; }))[0],
               "its size"));
    CHECK(DamagesOf(dir, Forged(whole, [&](auto* h, auto*) { h->text_bytes = huge; })).size() == 1);
    CHECK(Says(DamagesOf(dir, Forged(whole, [&](auto* h, auto*) { h->block_bytes = huge; }))[0],
               "the header has numbers"));
  }
  CHECK(Says(DamagesOf(dir, Forged(whole, [](auto* h, auto*) { h->width = 4; }))[0],
             "the header has numbers"));
  const std::string small = Forged(whole, [](auto* h, auto*) { h->vocabulary_size = 3; });
  CHECK(DamagesOf(dir, small) ==
        std::vector<std::string>{": the tokens 0 to 2 (bytes 128 to 133) are not of this "
                                 "tokenizer: token 2 is 3, its vocabulary has 3"});
  Ids ids(3);
  CHECK(Says(MessageOf([&] { TokenFile(dir.path("damaged")).Read(0, ids); }),
             "token 2 is 3, its vocabulary has 3"));
}

}  // namespace
}  // namespace mxtrain::test
