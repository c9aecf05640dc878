// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of recognized text: error rates of letters and words, which letters are taken for
// which, and the worst lines.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/tasks/report.h"

namespace mxtrain::tasks {

class LineReport final : public Report {
 public:
  LineReport(Head head, std::vector<std::string> alphabet)
      : Report(std::move(head)), alphabet_(std::move(alphabet)) {}

  struct Mistake {
    std::string example, truth, said;
    int64_t errors = 0;    // letters inserted, deleted or replaced
    double rate = 0;       // errors by letters of the text
    double score = 0;      // of the prediction
    io::Image image = {};  // of the worst ones
  };

  // Lines: [head,] file, true, predicted, score, errors.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  void KeepImages(int count, const report::ImageReader& reader) override {
    images_ = static_cast<size_t>(count), reader_ = &reader;
  }
  // Compared is the whole text of the source, if it has one, else that of the label. Ignored unless
  // the head gives rows of ctc_greedy_decoder. Examples whose numbers are not finite are not
  // counted.
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  void Finish() override;  // sorts the mistakes, the worst first
  bool empty() const override { return lines_read_ == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override {
    return "cer,wer,right,lines,letters,words,replaced,left_out,put_in";
  }
  std::string CsvLines(bool with_head) const override;
  // "text_lines", or "text_lines" by head.
  void AddTo(Json* result, int worst, bool several) const override;
  // worst.png: the worst lines; confused_letters.csv: letters replaced, deleted and inserted.
  void WriteFiles(const std::string& folder) const override;

  double cer() const;  // errors of letters by letters; NaN without any
  double wer() const;  // the same of words, which white space is between
  const std::vector<Mistake>& mistakes() const { return mistakes_; }

 private:
  // The letters of a pair: "" in place of one that is inserted or deleted.
  using Pair = std::pair<std::string, std::string>;

  void AddLine(const Example& example, const std::vector<std::string>& truth,
               const std::vector<std::string>& said, double score);
  void WriteLine(const Mistake& line, bool finite) const;
  std::vector<std::pair<Pair, int64_t>> MostConfused() const;  // the most frequent first
  Json ToJson(int worst) const;

  const std::vector<std::string> alphabet_;
  LineOutput lines_;
  int64_t lines_read_ = 0, right_ = 0, letters_ = 0, words_ = 0, word_errors_ = 0;
  int64_t replaced_ = 0, left_out_ = 0, put_in_ = 0;
  std::map<Pair, int64_t> confused_;  // (true, said)
  std::vector<Mistake> mistakes_;
  size_t images_ = 0;
  const report::ImageReader* reader_ = nullptr;
  std::multimap<double, size_t> depicted_;  // rate and index of the mistakes with images
};

}  // namespace mxtrain::tasks
