// SPDX-License-Identifier: Apache-2.0
// Token files whose writers were stopped: continued, they are those of one writer, byte for byte.
#include "mxtrain/text/partial_tokens.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "mxtrain/base/error.h"
#include "mxtrain/text/token_file.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

using namespace mxtrain::text;

// Documents of 1 to 3000 tokens; of 150,000 one in five, several blocks in all.
std::vector<Ids> RandomDocuments(int count) {
  std::mt19937 random(5);
  std::vector<Ids> documents(static_cast<size_t>(count));
  for (Ids& document : documents) {
    document.resize(random() % 5 == 0 ? 150'000 : random() % 3000 + 1);
    for (TokenId& id : document) id = random() % 256;
  }
  return documents;
}

// Adds the documents behind those that are recorded and records after each; stops, as a killed
// process would, before document `stop`.
void WriteUntil(const std::string& path, const std::vector<Ids>& documents, size_t stop,
                std::unique_ptr<PartialTokens> partial = nullptr) {
  if (!partial) partial = std::make_unique<PartialTokens>(path);
  const size_t begin = partial->recorded() ? std::stoull(partial->recorded()->place) : 0;
  TokenFileWriter writer(std::move(partial), *MakeByteTokenizer(), "documents");
  CHECK(writer.documents() == begin);
  writer.Record(std::to_string(begin));
  for (size_t i = begin; i < stop && i < documents.size(); ++i) {
    writer.Add(documents[i]);
    writer.EndDocument();
    writer.Record(std::to_string(i + 1));
  }
  if (stop > documents.size()) writer.Commit();
}

std::string AtOnce(const TempDir& dir, const std::vector<Ids>& documents) {
  WriteUntil(dir.path("whole.tokens"), documents, documents.size() + 1);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path("")), {}) == 1);
  std::string bytes = ReadFile(dir.path("whole.tokens"));
  std::filesystem::remove(dir.path("whole.tokens"));
  return bytes;
}

TEST_CASE("a file whose writers were stopped at every document is that of one writer") {
  const TempDir dir;
  const std::vector<Ids> documents = RandomDocuments(60);
  const std::string whole = AtOnce(dir, documents), path = dir.path("a.tokens");
  CHECK(whole.size() > (size_t{2} << 20));
  for (size_t stop = 1; stop <= documents.size() + 1; ++stop) {
    CHECK_FALSE(std::filesystem::exists(path));
    WriteUntil(path, documents, stop);
    // What a killed process wrote behind the last entry, and half an entry.
    if (stop <= documents.size()) {
      FileAppender(path + ".partial").Append(std::string(100'000 * (stop % 3), 'x'));
      FileAppender(path + ".journal").Append(std::string(10 * (stop % 4), '\1'));
    }
  }
  CHECK(ReadFile(path) == whole);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path("")), {}) == 1);
}

TEST_CASE("a journal that ends anywhere, or is damaged, is continued from an earlier place") {
  const TempDir dir;
  const std::vector<Ids> documents = RandomDocuments(12);
  const std::string whole = AtOnce(dir, documents), path = dir.path("a.tokens");
  WriteUntil(path, documents, 8);
  const std::string journal = ReadFile(path + ".journal"), tokens = ReadFile(path + ".partial");
  const auto continued = [&](const std::string& other) {
    dir.Write("a.tokens.journal", other);
    dir.Write("a.tokens.partial", tokens);
    WriteUntil(path, documents, documents.size() + 1);
    CHECK(ReadFile(path) == whole);
  };
  for (size_t size = 0; size <= journal.size(); size += size < 100 ? 7 : 97)
    continued(journal.substr(0, size));
  for (size_t at = 0; at < journal.size(); at += 61) {
    std::string damaged = journal;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    continued(damaged);
  }
  // The tokens alone tell nothing, and neither does the journal.
  dir.Write("a.tokens.journal", journal);
  CHECK_FALSE(PartialTokens(path).recorded());
  CHECK_FALSE(std::filesystem::exists(path + ".journal"));
}

TEST_CASE("tokens that are not those of the journal are refused") {
  const TempDir dir;
  const std::vector<Ids> documents = RandomDocuments(20);
  const std::string path = dir.path("a.tokens");
  WriteUntil(path, documents, 19);
  const std::string tokens = ReadFile(path + ".partial");
  CHECK(tokens.size() > (size_t{1} << 20));
  for (const size_t at : {size_t{3}, size_t{70}, size_t{5000}, tokens.size() - 1}) {
    std::string damaged = tokens;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    dir.Write("a.tokens.partial", damaged);
    CHECK(Says(MessageOf([&] { WriteUntil(path, documents, 21); }),
               "a.tokens.partial is damaged: it does not hold the"));
  }
  dir.Write("a.tokens.partial", tokens.substr(0, tokens.size() - 1));
  CHECK(Says(MessageOf([&] { WriteUntil(path, documents, 21); }), "is damaged"));
  dir.Write("a.tokens.partial", tokens);
  const auto with = [&](const Tokenizer& tokenizer, const char* request) {
    return MessageOf(
        [&] { TokenFileWriter(std::make_unique<PartialTokens>(path), tokenizer, request); });
  };
  CHECK(Says(with(*MakeByteTokenizer(), "others"), "was begun with another request"));
  CHECK(Says(with(*MakeCharacterTokenizer(text::Corpus()), "documents"),
             "was begun with another request"));
  WriteUntil(path, documents, 21);
  CHECK(VerifyTokenFile(path).empty());
}

TEST_CASE("one process writes, and what is discarded is gone") {
  const TempDir dir;
  const std::vector<Ids> documents = RandomDocuments(3);
  const std::string path = dir.path("a.tokens");
  auto first = std::make_unique<PartialTokens>(path);
  CHECK(Says(MessageOf([&] { PartialTokens second(path); }), "another process is writing " + path));
  WriteUntil(path, documents, 2, std::move(first));
  PartialTokens left(path);
  REQUIRE(left.recorded());
  CHECK(left.recorded()->place == "2");
  CHECK(left.recorded()->request == "documents");
  CHECK(left.recorded()->tokens == documents[0].size() + documents[1].size());
  left.Discard();
  CHECK_FALSE(left.recorded());
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::create_directory(dir.path("folder.tokens"));
  CHECK(
      Says(MessageOf([&] { PartialTokens folder(dir.path("folder.tokens")); }), "it is a folder"));
}

}  // namespace
}  // namespace mxtrain::test
