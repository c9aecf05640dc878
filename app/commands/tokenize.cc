// SPDX-License-Identifier: Apache-2.0
// mxtrain tokenize TEXT...
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <thread>

#include "app/commands/command_list.h"
#include "app/commands/progress.h"
#include "app/commands/tokenize_request.h"
#include "app/config/near_file.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/encode_texts.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/text/partial_tokens.h"
#include "mxtrain/text/token_file.h"
#include "mxtrain/text/train_bpe.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kRecordEvery = std::chrono::milliseconds(500);

// For tests that end the process in the middle.
void LingerBehindPart() {
  if (const char* text = std::getenv("MXTRAIN_STEP_DELAY_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(text)));
}

class Tokenize final : public Command {
 public:
  void Declare(CommandLine& line) override {
    Arguments arguments =
        line.Add("tokenize", "turn texts into tokens, and make the tokenizer for it");
    arguments
        .Option("texts", &texts_,
                "text files, each a document, tables and JSON lines (.tsv, .csv, .jsonl) with a "
                "document in each row, and folders of .txt or .jsonl files; with --verify files of "
                "tokens")
        .Required()
        .Takes("TEXT");
    arguments
        .Option("--column", &columns_,
                "of tables and JSON lines: the column of the text, or key; may be repeated, and is "
                "then joined by blanks; default: text")
        .Takes("NAME")
        .Repeats();
    arguments
        .Option("--tokenizer", &tokenizer_,
                "characters, bytes or words; a tokenizer.json, a file of tokens, or a folder with "
                "GPT-2's encoder.json and vocab.bpe; default: bytes, or what --train makes")
        .Takes("NAME");
    arguments
        .Option("--train", &train_,
                "make byte-level BPE of so many tokens of the texts, split as GPT-2 splits them")
        .Takes("N");
    arguments.Option("--save", &save_, "write the tokenizer into this file of JSON").Takes("FILE");
    arguments
        .Option("--output", &output_,
                "write the tokens into this file, FILE.tokens; default: only count them")
        .Takes("FILE");
    arguments.Flag("--overwrite", &overwrite_, "replace existing files");
    arguments.Flag("--verify", &verify_, "compare files of tokens with their checksums");
    arguments.Examples(
        "  mxtrain tokenize corpus --train 8000 --save tokenizer.json --output corpus.tokens\n  "
        "mxtrain tokenize more.txt --tokenizer tokenizer.json --output more.tokens\n  mxtrain "
        "tokenize --verify corpus.tokens");
  }

  int Run(const CommonFlags& flags, console::Console& console) override {
    CheckFlags();
    if (verify_) return Verify(flags);
    io::TextPaths paths{Files()};
    if (!columns_.empty()) paths.columns = columns_;
    Counts counts;
    const text::TokenizerPtr tokenizer =
        output_.empty() ? Count(paths, console, &counts) : Write(paths, console, &counts);
    Print(flags, *tokenizer, counts);
    return 0;
  }

 private:
  struct Counts {
    uint64_t bytes = 0, tokens = 0, documents = 0;
    void Add(const io::EncodedPart& part) {
      bytes += static_cast<uint64_t>(part.bytes), tokens += part.ids.size();
      documents += part.ends.size();
    }
  };

  text::TokenizerPtr Count(const io::TextPaths& paths, console::Console& console,
                           Counts* counts) const {
    RequireSaveFree("");
    text::TokenizerPtr tokenizer = TokenizerFor(paths);
    if (!save_.empty()) WriteFileAtomically(save_, tokenizer->ToText());
    Progress progress(console, "tokenizing", "bytes", BytesOf(paths.files));
    io::EncodeTexts(*tokenizer, paths, [&](const io::EncodedPart& part) {
      counts->Add(part);
      progress.Add(part.bytes);
    });
    return tokenizer;
  }

  // Continues what the same command left when it was killed.
  text::TokenizerPtr Write(const io::TextPaths& paths, console::Console& console,
                           Counts* counts) const {
    const std::string request = TokenizeRequest(paths, tokenizer_, train_);
    auto partial = std::make_unique<text::PartialTokens>(output_);
    std::vector<std::string> differences;
    if (partial->recorded())
      differences = DifferencesOfRequests(partial->recorded()->request, request);
    if (!differences.empty() && overwrite_) partial->Discard();
    TokenizePlace place;
    text::TokenizerPtr tokenizer;
    if (const std::optional<text::PartialTokens::Recorded>& recorded = partial->recorded()) {
      if (!differences.empty()) RefuseOtherWork(partial->partial_path(), differences);
      RequireSaveFree(recorded->tokenizer_text);
      tokenizer = text::TokenizerFromText(recorded->tokenizer_text,
                                          partial->partial_path() + ": tokenizer");
      place = TokenizePlaceFrom(recorded->place);
      console.Message(LogLevel::kInfo,
                      format("{} is continued behind {}", report::Printable(output_),
                             Counted(static_cast<int64_t>(recorded->tokens), "token")));
    } else {
      RequireSaveFree("");
      tokenizer = TokenizerFor(paths);
    }
    text::TokenFileWriter writer(std::move(partial), *tokenizer, request);
    writer.Record(ToText(place));
    if (!save_.empty()) WriteFileAtomically(save_, tokenizer->ToText());
    try {
      WriteTokens(paths, *tokenizer, console, &place, &writer);
    } catch (const Error& error) {
      // Texts that must be changed: nothing of it can be continued.
      if (error.kind() == ErrorKind::kData) writer.Discard();
      throw;
    }
    writer.Commit();
    *counts = {static_cast<uint64_t>(place.bytes), writer.tokens(), writer.documents()};
    return tokenizer;
  }

  static void WriteTokens(const io::TextPaths& paths, const text::Tokenizer& tokenizer,
                          console::Console& console, TokenizePlace* place,
                          text::TokenFileWriter* writer) {
    Progress progress(console, "tokenizing", "bytes", BytesOf(paths.files) - place->bytes);
    Clock::time_point recorded = Clock::now();
    const auto put = [&](const io::EncodedPart& part) {
      std::span<const text::TokenId> rest = part.ids;
      for (size_t told = 0; const size_t end : part.ends) {
        writer->Add(rest.first(end - told));
        writer->EndDocument();
        rest = rest.subspan(end - told);
        told = end;
      }
      writer->Add(rest);
      progress.Add(part.bytes);
      place->texts = part.next;
      place->bytes += part.bytes;
      LingerBehindPart();
      if (Clock::now() - recorded < kRecordEvery) return;
      writer->Record(ToText(*place));
      recorded = Clock::now();
    };
    io::EncodeTexts(tokenizer, paths, put, io::TextPlace(place->texts));
  }

  [[noreturn]] void RefuseOtherWork(const std::string& partial,
                                    const std::vector<std::string>& differences) const {
    constexpr size_t kShown = 3;
    std::string list;
    for (size_t i = 0; i < std::min(kShown, differences.size()); ++i)
      list += (i > 0 ? ", " : "") + differences[i];
    if (differences.size() > kShown) list += format(", and {} more", differences.size() - kShown);
    const bool gone = std::ranges::any_of(
        differences, [](const std::string& text) { return text.ends_with(kChangedSince); });
    Throw(ErrorKind::kFileSystem, "{} holds the beginning of other tokens: {}; {}", partial, list,
          gone ? "it cannot be continued: use --overwrite to begin again"
               : "repeat that command to continue it, or use --overwrite to begin again");
  }

  // A command that is continued finds the tokenizer that it saved.
  void RequireSaveFree(const std::string& saved_text) const {
    std::error_code none;
    if (!saved_text.empty() && fs::is_regular_file(save_, none) && ReadFile(save_) == saved_text)
      return;
    report::RequireFree(std::array{save_}, Read(), overwrite_);
  }

  // What may not be replaced.
  std::vector<std::string> Read() const {
    std::vector<std::string> read = Files();
    read.push_back(tokenizer_);
    return read;
  }

  void CheckFlags() const {
    if (verify_) {
      if (!tokenizer_.empty() || train_ || !save_.empty() || !output_.empty())
        Throw(ErrorKind::kUsage, "--verify reads files of tokens and writes nothing");
      return;
    }
    if (train_ && !tokenizer_.empty())
      Throw(ErrorKind::kUsage, "--train makes a tokenizer: remove --tokenizer");
    if (!output_.empty() && fs::path(output_).extension() != ".tokens")
      Throw(ErrorKind::kUsage, "--output {}: name a file of tokens FILE.tokens", output_);
    report::RequireFree(std::array{save_, output_}, Read(), /*overwrite=*/true);
    report::RequireFree(std::array{output_}, Read(), overwrite_);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const std::string& path : texts_) {
      if (!fs::exists(path))
        Throw(ErrorKind::kFileSystem, "there is no file or folder {}{}", path,
              config::DidYouMeanFile(path, config::NearFiles::kData));
      if (io::IsTokenFileName(path))
        Throw(ErrorKind::kUsage, "{} holds tokens already; --verify compares it with its checksums",
              path);
      for (std::string& file : io::TextFiles(path)) files.push_back(std::move(file));
    }
    return files;
  }

  // 0 for what is not a regular file.
  static int64_t BytesOf(const std::vector<std::string>& files) {
    int64_t bytes = 0;
    for (const std::string& file : files) {
      std::error_code error;
      const auto size = fs::file_size(file, error);
      if (!error) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }

  text::TokenizerPtr TokenizerFor(const io::TextPaths& paths) const {
    if (!train_) return io::OpenTokenizer(tokenizer_.empty() ? "bytes" : tokenizer_, paths);
    text::TrainBpeOptions options;
    options.vocabulary_size = *train_;
    const io::Texts texts(paths);
    for (size_t i = 0; i < texts.corpus().size(); ++i) {
      if (!IsUtf8(texts.corpus()[i])) {
        Throw(ErrorKind::kData, "{} is not UTF-8, from which byte-level BPE is made",
              texts.NameOf(i));
      }
    }
    return text::TrainBpe(texts.corpus(), options);
  }

  void Print(const CommonFlags& flags, const text::Tokenizer& tokenizer,
             const Counts& counts) const {
    const auto [bytes, tokens, documents] = counts;
    const double each = tokens > 0 ? static_cast<double>(bytes) / static_cast<double>(tokens) : 0;
    if (flags.json) {
      std::cout << report::JsonText({{"tokenizer", tokenizer.Describe()},
                                     {"documents", static_cast<int64_t>(documents)},
                                     {"bytes", bytes},
                                     {"tokens", tokens},
                                     {"bytes_per_token", each}})
                << "\n";
      return;
    }
    std::cout << format("{} of {} in {}: {:.3f} bytes each, by {}\n",
                        Counted(static_cast<int64_t>(tokens), "token"),
                        Counted(static_cast<int64_t>(bytes), "byte"),
                        Counted(static_cast<int64_t>(documents), "document"), each,
                        tokenizer.Describe());
    for (const std::string& file : {save_, output_}) {
      if (!file.empty()) std::cout << report::ListedName(file) << "\n";
    }
  }

  int Verify(const CommonFlags& flags) const {
    Json list = Json::array();
    bool damaged = false;
    for (const std::string& file : texts_) {
      RequireFinished(file);
      const std::vector<std::string> damages = text::VerifyTokenFile(file);
      damaged = damaged || !damages.empty();
      list.push_back({{"file", file}, {"damages", damages}});
      if (flags.json) continue;
      if (damages.empty()) std::cout << report::ListedName(file) << ": as it was written\n";
      for (const std::string& damage : damages)
        std::cout << report::ListedName(file) << ": " << report::Printable(damage) << "\n";
    }
    if (flags.json) std::cout << report::JsonText({{"files", list}}) << "\n";
    return damaged ? static_cast<int>(ErrorKind::kData) : 0;
  }

  // What a command that was killed left has no checksums.
  static void RequireFinished(const std::string& file) {
    constexpr std::string_view kPartial = ".partial", kJournal = ".journal";
    for (const std::string_view ending : {kPartial, kJournal}) {
      const std::string whole = file.substr(0, file.size() - std::min(file.size(), ending.size()));
      if (file.ends_with(ending) && io::IsTokenFileName(whole) && fs::is_regular_file(file))
        Throw(ErrorKind::kData, "{} is unfinished; repeat the command that writes {}", file, whole);
    }
  }

  std::vector<std::string> texts_, columns_;
  std::string tokenizer_, save_, output_;
  std::optional<int64_t> train_;
  bool overwrite_ = false, verify_ = false;
};

}  // namespace

MXTRAIN_COMMAND(tokenize, list) {
  list.Add(HelpGroup::kReference, 47, std::make_unique<Tokenize>());
}

}  // namespace mxtrain::commands
