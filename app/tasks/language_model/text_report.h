// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a language model: how probable it finds the tokens that come next.
#include <string>

#include "app/tasks/report.h"

namespace mxtrain::tasks {

class TextReport final : public Report {
 public:
  using Report::Report;

  // Lines: [head,] example, loss (mean over its tokens, in nats), perplexity.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  // Ignored unless it gives a distribution over tokens for each token of the label. Labels that are
  // no token (negative) do not count.
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  bool empty() const override { return tokens_ == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override { return "loss,perplexity,bits_per_token,tokens"; }
  std::string CsvLines(bool with_head) const override;
  // "text", or "text" by head.
  void AddTo(Json* result, int worst, bool several) const override;

  double loss() const;  // mean over the tokens, in nats
  int64_t tokens() const { return tokens_; }

 private:
  void WriteLine(const std::string& name, double loss) const;

  LineOutput lines_;
  double sum_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace mxtrain::tasks
