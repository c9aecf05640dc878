// SPDX-License-Identifier: Apache-2.0
// Tokenizers and token files. A tokenizer that is accepted encodes some texts, gives a text of
// itself that makes the same one, and decodes what it encoded; byte-level ones to the same bytes.
#include <cstdlib>
#include <cstring>

#include "mxtrain/base/file.h"
#include "mxtrain/base/math.h"
#include "mxtrain/text/internal/token_layout.h"
#include "mxtrain/text/token_file.h"
#include "mxtrain/text/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

namespace mxtrain::fuzz {

using namespace mxtrain::text;

constexpr std::string_view kModelBegin = R"({"model":{"type":"BPE","vocab":{)";

std::vector<std::string> LargeInputs() {
  std::string tokens(kModelBegin), merges = R"("merges":[)", added = R"({"added_tokens":[)";
  for (int i = 0; i < 50'000; ++i) {
    tokens += format(R"("{0}":{0},"a{0}":{1},)", i, i + 100'000);
    merges += format(R"(["{}","{}"],)", i, i);
    added += format(R"({{"content":"{}","id":{}}},)", std::string(900, 'a').substr(i % 900), i);
  }
  tokens.back() = merges.back() = added.back() = ' ';
  const std::string deep(100'000, '[');
  return {tokens + "}," + merges + "]}}",
          tokens + R"(},"merges":[]}})",
          added + R"(],"model":{"vocab":{},"merges":[]}})",
          deep,
          R"({"normalizer":)" + deep,
          R"({"mxtrain_tokenizer":1,"kind":"words","words":[)" + std::string(50'000, '"')};
}

void CheckTokenizer(const Tokenizer& tokenizer, std::string_view input) {
  const std::string text = tokenizer.ToText();
  const TokenizerPtr copy = TokenizerFromText(text, "copy");
  if (copy->ToText() != text) std::abort();
  const std::string texts[] = {"Hello, world 42!  \r\n\u00c9a\u0301\u4e2d\U0001f600\xff\xfe<s>",
                               std::string(2'000, 'a'), std::string(input.substr(0, 2'000))};
  for (const std::string& sample : texts) {
    for (const bool special : {false, true}) {
      MayRefuse([&] {
        const Ids ids = tokenizer.Encode(sample, {special, special});
        if (copy->Encode(sample, {special, special}) != ids) std::abort();
        for (const TokenId id : ids) {
          if (id >= static_cast<uint64_t>(tokenizer.vocabulary_size())) std::abort();
        }
        const std::string decoded = tokenizer.Decode(ids);
        if (tokenizer.Describe() == "bytes" && decoded != sample) std::abort();
      });
    }
  }
}

// Makes the checksums right, so that a mutation reaches the code behind them.
std::string Repaired(std::string_view input) {
  std::string bytes(input);
  TokenHeader header;
  TokenTrailer trailer;
  if (bytes.size() < sizeof header + sizeof trailer) return bytes;
  const uint64_t end = bytes.size() - sizeof trailer, most = end - sizeof header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&trailer, bytes.data() + end, sizeof trailer);
  if (header.text_bytes > most || trailer.tokens > most) return bytes;
  const uint64_t front = RoundUp(sizeof header + header.text_bytes, kTokenAlignment),
                 index = front + RoundUp(trailer.tokens * header.width, sizeof(uint64_t));
  if (index > end) return bytes;
  header.text_sum = Checksum(bytes.substr(sizeof header, header.text_bytes));
  header.checksum = SumOfRecord(header);
  bytes.replace(0, sizeof header, BytesOfRecord(header));
  trailer.front_sum = Checksum(bytes.substr(0, front));
  trailer.index_sum = Checksum(bytes.substr(index, end - index));
  trailer.checksum = SumOfRecord(trailer);
  return bytes.replace(end, sizeof trailer, BytesOfRecord(trailer));
}

void ReadTokens(std::string_view bytes) {
  Scratch().Write("a.tokens", bytes);
  const std::string path = Scratch().path("a.tokens");
  const bool damaged = !VerifyTokenFile(path).empty();
  MayRefuse([&] {
    const TokenFile file(path);
    Ids ids(file.tokens());
    file.Read(0, ids);
    for (uint64_t i = 0; i < file.documents(); ++i) {
      if (file.BeginOf(i) > file.BeginOf(i + 1)) std::abort();
    }
    const TokenizerPtr tokenizer = file.NewTokenizer();
    if (damaged) return;
    // What is whole is written again byte for byte.
    TokenFileWriter writer(Scratch().path("b.tokens"), *tokenizer);
    for (uint64_t i = 0; i < file.documents(); ++i) {
      const uint64_t begin = file.BeginOf(i);
      writer.Add(std::span(ids).subspan(begin, file.BeginOf(i + 1) - begin));
      writer.EndDocument();
    }
    writer.Commit();
    if (TokenFile(Scratch().path("b.tokens")).tokens() != file.tokens()) std::abort();
  });
}

}  // namespace mxtrain::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mxtrain::fuzz;
  const std::string_view bytes = TextOf(data, size);
  if (bytes.starts_with("MXTOKENS")) {
    ReadTokens(bytes);
    ReadTokens(Repaired(bytes));
  } else {
    MayRefuse([&] { CheckTokenizer(*mxtrain::text::TokenizerFromText(bytes, "input"), bytes); });
  }
  return 0;
}
