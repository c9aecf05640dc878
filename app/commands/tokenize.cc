// SPDX-License-Identifier: Apache-2.0
// mxtrain tokenize TEXT...
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>

#include "app/commands/command_list.h"
#include "app/commands/progress.h"
#include "app/config/near_file.h"
#include "app/report/output.h"
#include "app/report/output_path.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"
#include "mxtrain/io/encode_texts.h"
#include "mxtrain/io/text_files.h"
#include "mxtrain/text/token_file.h"
#include "mxtrain/text/train_bpe.h"

namespace mxtrain::commands {
namespace {

namespace fs = std::filesystem;

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
    const text::TokenizerPtr tokenizer = TokenizerFor(paths);
    if (!save_.empty()) WriteFileAtomically(save_, tokenizer->ToText());
    std::optional<text::TokenFileWriter> writer;
    if (!output_.empty()) writer.emplace(output_, *tokenizer);
    uint64_t bytes = 0, tokens = 0, documents = 0;
    Progress progress(console, "tokenizing", "bytes", BytesOf(paths.files));
    io::EncodeTexts(*tokenizer, paths, [&](io::EncodedPart&& part) {
      bytes += static_cast<uint64_t>(part.bytes), tokens += part.ids.size();
      documents += part.ends.size();
      progress.Add(part.bytes);
      if (!writer) return;
      std::span<const text::TokenId> rest = part.ids;
      for (size_t told = 0; const size_t end : part.ends) {
        writer->Add(rest.first(end - told));
        writer->EndDocument();
        rest = rest.subspan(end - told);
        told = end;
      }
      writer->Add(rest);
    });
    if (writer) writer->Commit();
    Print(flags, *tokenizer, documents, bytes, tokens);
    return 0;
  }

 private:
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
    std::vector<std::string> read = Files();
    read.push_back(tokenizer_);
    report::RequireFree(std::array{save_, output_}, read, overwrite_);
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

  void Print(const CommonFlags& flags, const text::Tokenizer& tokenizer, uint64_t documents,
             uint64_t bytes, uint64_t tokens) const {
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
