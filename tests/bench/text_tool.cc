// SPDX-License-Identifier: Apache-2.0
// Tokenizers from a shell, for comparison with other programs
// (tests/reference/check_tokenizers.py).
//
//   text_tool encode TOKENIZER FILE [special]   ids of each document on stdout, u32 little-endian;
//                                               each followed by 0xffffffff
//   text_tool time TOKENIZER FILE               processor seconds to encode all documents, ten runs
//   text_tool decode TOKENIZER FILE             FILE: u32 ids; their text on stdout
//   text_tool train SIZE MINIMUM FILE           tokenizer.json of a byte-level BPE on stdout
//
// TOKENIZER is a tokenizer.json, or ENCODER_JSON,VOCAB_BPE. Documents of FILE end in a byte 0xff.
#include <time.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/text/tokenizer.h"
#include "mxtrain/text/train_bpe.h"

namespace {

using namespace mxtrain;
using namespace mxtrain::text;

constexpr TokenId kEndOfDocument = ~TokenId{0};
constexpr int kRuns = 10;

TokenizerPtr OpenTokenizer(const std::string& name) {
  const size_t comma = name.find(',');
  if (comma == std::string::npos) return LoadTokenizer(name);
  return LoadGpt2Tokenizer(name.substr(0, comma), name.substr(comma + 1));
}

std::vector<std::string_view> DocumentsOf(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    documents.push_back(text.substr(0, text.find('\xff')));
    text.remove_prefix(std::min(text.size(), documents.back().size() + 1));
  }
  return documents;
}

void Write(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

void Encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  Ids ids;
  for (const std::string_view document : DocumentsOf(text)) {
    tokenizer.Encode(document, options, &ids);
    ids.push_back(kEndOfDocument);
  }
  Write({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)});
}

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void Time(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::string_view> documents = DocumentsOf(text);
  for (int run = 0; run < kRuns; ++run) {
    const double begin = ProcessorSeconds();
    size_t tokens = 0;
    for (const std::string_view document : documents) tokens += tokenizer.Encode(document).size();
    const double seconds = ProcessorSeconds() - begin;
    std::printf("%.4f s, %.1f MB/s, %zu tokens\n", seconds,
                static_cast<double>(text.size()) * 1e-6 / seconds, tokens);
  }
}

void Decode(const Tokenizer& tokenizer, const std::string& bytes) {
  Ids ids(bytes.size() / sizeof(TokenId));
  std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(TokenId));
  Write(tokenizer.Decode(ids));
}

int64_t ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size())
    Throw(ErrorKind::kUsage, "'{}' is not a number", text);
  return number;
}

void Run(const std::vector<std::string>& args) {
  if (args.size() < 3 || args.size() > 4)
    Throw(ErrorKind::kUsage,
          "usage: text_tool encode|time|decode TOKENIZER FILE, or train SIZE "
          "MINIMUM FILE");
  const std::string text = ReadFile(args.back() == "special" ? args[2] : args.back());
  if (args[0] == "train" && args.size() == 4) {
    TrainBpeOptions options;
    options.vocabulary_size = ParseNumber(args[1]);
    options.minimum_count = ParseNumber(args[2]);
    Write(TrainBpe(DocumentsOf(text), options)->ToText());
    return;
  }
  const TokenizerPtr tokenizer = OpenTokenizer(args[1]);
  if (args[0] == "encode") {
    const bool special = args.back() == "special";
    Encode(*tokenizer, text, {special, special});
  } else if (args[0] == "time") {
    Time(*tokenizer, text);
  } else if (args[0] == "decode") {
    Decode(*tokenizer, text);
  } else {
    Throw(ErrorKind::kUsage, "unknown command '{}'", args[0]);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Run({argv + 1, argv + argc});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "text_tool: %s\n", error.what());
  return 1;
}
