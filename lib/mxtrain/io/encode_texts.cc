// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/encode_texts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/text.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/internal/text_rows.h"
#include "mxtrain/io/text_files.h"

namespace mxtrain::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostReadBytes = size_t{1} << 20;  // of a file that is not mapped
constexpr size_t kPartBytes = size_t{1} << 20;
constexpr size_t kPartsOfThread = 4;  // that wait for the others, or for being put

// A part of a file that is to be encoded.
struct TextPart {
  size_t file = 0;  // its number
  std::shared_ptr<const TextFile> text_file;
  std::string_view text;
  int64_t first_line = 0;                 // of JSON lines; 0: of a text
  std::shared_ptr<const TextRows> table;  // instead of text: its rows [begin, end)
  size_t begin = 0, end = 0;
  bool ends = true;  // whether its text ends with it
  EncodedPart to;    // without what stands between texts
};

TextColumns ColumnsOf(const TextPaths& paths) {
  return {paths.columns, "", "", "auto"};
}

// JSON lines that can be read piece by piece.
bool IsCutByLines(const std::string& path) {
  const std::string ending = Lower(fs::path(path).extension().string());
  return HoldsRows(path) && (ending == ".jsonl" || ending == ".ndjson");
}

// Takes the files apart, one after another.
class TextParts {
 public:
  TextParts(const text::Tokenizer& tokenizer, const TextPaths& paths, const TextPlace& from)
      : tokenizer_(tokenizer), paths_(paths), next_(from.file) {
    if (from.byte > 0 || from.row > 0) Skip(from);
  }

  // False after the last one.
  bool Next(TextPart* part) {
    if (!file_ && !table_) {
      if (next_ == paths_.files.size()) return false;
      Open(paths_.files[next_++]);
    }
    *part = {};
    part->file = next_ - 1;
    table_ ? TakeRows(part) : TakeText(part);
    part->to.next = Place();
    return true;
  }
  // Behind the parts so far.
  TextPlace Place() const {
    if (table_) return {.file = next_ - 1, .row = row_};
    if (file_)
      return {.file = next_ - 1, .byte = file_->text().size() - rest_.size(), .line = line_};
    return {.file = next_};
  }

 private:
  // To a place within a file.
  void Skip(const TextPlace& to) {
    const bool known = next_ < paths_.files.size();
    if (known) Open(paths_.files[next_++]);
    if (!known || (table_ ? to.row >= table_->texts.size() : to.byte >= rest_.size()))
      Throw(ErrorKind::kData, "{}: the text ends before the place that was reached",
            known ? paths_.files[next_ - 1] : "the texts");
    row_ = to.row;
    line_ = to.line;
    if (!table_) rest_.remove_prefix(to.byte);
  }

  void Open(const std::string& path) {
    if (HoldsRows(path) && !IsCutByLines(path)) {
      table_ = std::make_shared<const TextRows>(ReadTextRows(path, ColumnsOf(paths_)));
      row_ = 0;
      return;
    }
    file_ = std::make_shared<const TextFile>(path);
    rest_ = file_->text();
    line_ = IsCutByLines(path) ? 1 : 0;
  }

  void TakeText(TextPart* part) {
    part->text_file = file_;
    part->text = rest_.substr(0, line_ > 0 ? BytesOfLines() : BytesOfPart());
    part->to.bytes = std::ssize(part->text);
    part->first_line = line_;
    rest_.remove_prefix(part->text.size());
    part->ends = rest_.empty();
    if (line_ > 0) line_ += std::ranges::count(part->text, '\n');
    if (rest_.empty()) file_.reset();
  }

  void TakeRows(TextPart* part) {
    part->table = table_;
    part->begin = row_;
    for (; row_ < table_->texts.size() && part->to.bytes < static_cast<int64_t>(kPartBytes); ++row_)
      part->to.bytes += std::ssize(table_->texts[row_]);
    part->end = row_;
    if (row_ == table_->texts.size()) table_.reset();
  }

  // Where nothing can be cut, twice as much is tried.
  size_t BytesOfPart() const {
    for (size_t bytes = kPartBytes; bytes < rest_.size(); bytes *= 2) {
      if (const size_t cut = tokenizer_.LastCut(rest_.substr(0, bytes)); cut > 0) return cut;
    }
    return rest_.size();
  }
  size_t BytesOfLines() const {
    const size_t end = rest_.find('\n', std::min(kPartBytes, rest_.size()));
    return std::min(end, rest_.size() - 1) + 1;
  }

  const text::Tokenizer& tokenizer_;
  const TextPaths& paths_;
  size_t next_ = 0;  // of paths_
  std::shared_ptr<const TextFile> file_;
  std::string_view rest_;  // of file_
  int64_t line_ = 0;       // where rest_ begins, of JSON lines
  std::shared_ptr<const TextRows> table_;
  size_t row_ = 0;
};

void EncodeRow(const text::Tokenizer& tokenizer, const std::string& file, const TextRows& rows,
               size_t row, EncodedPart* to) {
  const std::string& text = rows.texts[row];
  if (text.empty()) return;
  EncodeFile(tokenizer, text, format("{}:{}", file, rows.lines[row]), &to->ids);
  to->ends.push_back(to->ids.size());
}

void EncodePart(const text::Tokenizer& tokenizer, const TextPaths& paths, TextPart* part) {
  const std::string& file = paths.files[part->file];
  if (part->table) {
    for (size_t row = part->begin; row < part->end; ++row)
      EncodeRow(tokenizer, file, *part->table, row, &part->to);
  } else if (part->first_line > 0) {
    const TextRows rows = ReadJsonRows(file, part->text, part->first_line, ColumnsOf(paths));
    for (size_t row = 0; row < rows.texts.size(); ++row)
      EncodeRow(tokenizer, file, rows, row, &part->to);
  } else {
    EncodeFile(tokenizer, part->text, file, &part->to.ids);
    if (part->ends) part->to.ends.push_back(part->to.ids.size());
  }
}

void EncodeParts(const text::Tokenizer& tokenizer, const TextPaths& paths,
                 std::vector<TextPart>* parts) {
  std::atomic<size_t> next{0};
  Mutex mutex;
  std::exception_ptr error;
  size_t failed = parts->size();  // the first part with an error
  const auto work = [&] {
    for (size_t i = next++; i < parts->size(); i = next++) {
      try {
        EncodePart(tokenizer, paths, &(*parts)[i]);
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

// Puts parts behind each other. Where a text ends is told when the next one begins, behind what
// stands between the two, or at the end.
class Joiner {
 public:
  Joiner(const text::Tokenizer& tokenizer, const std::function<void(EncodedPart&&)>& put,
         bool ended)
      : separator_(SeparatorOf(tokenizer)), put_(put), ended_(ended) {}

  void Add(TextPart&& part) {
    EncodedPart joined;
    joined.bytes = part.to.bytes;
    size_t begin = 0;
    const auto append = [&](size_t end) {
      if (ended_) EndText(/*last=*/false, &joined);
      joined.ids.insert(joined.ids.end(), part.to.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                        part.to.ids.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    };
    for (const size_t end : part.to.ends) {
      append(end);
      ended_ = true;
    }
    if (begin < part.to.ids.size()) append(part.to.ids.size());
    joined.next = part.to.next;
    joined.next.ended = ended_;
    put_(std::move(joined));
  }
  void End(const TextPlace& place) {
    if (!ended_) return;
    EncodedPart end;
    end.next = place;
    EndText(/*last=*/true, &end);
    put_(std::move(end));
  }

 private:
  void EndText(bool last, EncodedPart* joined) {
    if (separator_ && !last) joined->ids.push_back(*separator_);
    joined->ends.push_back(joined->ids.size());
    ended_ = false;
  }

  const std::optional<text::TokenId> separator_;
  const std::function<void(EncodedPart&&)>& put_;
  bool ended_;  // a text, which was not told yet
};

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

Texts::Texts(const TextPaths& paths) {
  for (const std::string& path : paths.files) {
    if (!HoldsRows(path)) {
      views_.push_back(files_.emplace_back(path).text());
      names_.push_back(path);
      continue;
    }
    TextRows rows = ReadTextRows(path, ColumnsOf(paths));
    for (size_t row = 0; row < rows.texts.size(); ++row) {
      if (rows.texts[row].empty()) continue;
      views_.push_back(rows_.emplace_back(std::move(rows.texts[row])));
      names_.push_back(format("{}:{}", path, rows.lines[row]));
    }
  }
}

void EncodeTexts(const text::Tokenizer& tokenizer, const TextPaths& paths,
                 const std::function<void(EncodedPart&&)>& put, const TextPlace& from) {
  const size_t most = kPartsOfThread * static_cast<size_t>(UsableCpuCount());
  TextParts all(tokenizer, paths, from);
  Joiner joiner(tokenizer, put, from.ended);
  std::vector<TextPart> parts;
  const auto encode = [&] {
    EncodeParts(tokenizer, paths, &parts);
    for (TextPart& part : parts) joiner.Add(std::move(part));
    parts.clear();
  };
  for (TextPart part; all.Next(&part);) {
    parts.push_back(std::move(part));
    if (parts.size() == most) encode();
  }
  encode();
  joiner.End(all.Place());
}

}  // namespace mxtrain::io
