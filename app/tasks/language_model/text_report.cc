// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/language_model/text_report.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "app/report/output.h"
#include "app/tasks/language_model/token_scores.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

double BitsOf(double nats) {
  return nats / std::numbers::ln2;
}

}  // namespace

double TextReport::loss() const {
  return tokens_ > 0 ? sum_ / static_cast<double>(tokens_)
                     : std::numeric_limits<double>::quiet_NaN();
}

void TextReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv)
    lines.file->Write(format("{}example,loss,perplexity\n", lines.with_head ? "head," : ""));
}

void TextReport::WriteLine(const std::string& name, double loss) const {
  if (!lines_.file) return;
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json line = {{"example", name}, {"loss", loss}, {"perplexity", std::exp(loss)}};
    if (lines_.with_head) line["head"] = head().name;
    return lines_.file->Write(report::JsonText(line) + "\n");
  }
  lines_.file->Write(format("{}{},{},{}\n",
                            lines_.with_head ? report::QuoteCsv(head().name) + "," : "",
                            report::QuoteCsv(name), loss, std::exp(loss)));
}

void TextReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  const auto compared = Compare(head(), examples, outputs);
  if (!compared) return;
  const auto layout = TokenLayoutOf(compared->outputs_shape, compared->label_shape);
  if (!layout) return;
  const auto length = static_cast<size_t>(layout->length);
  for (size_t i = 0; i < examples.count(); ++i) {
    const std::span scores =
        std::span(compared->outputs).subspan(i * layout->size(), layout->size());
    double sum = 0;
    int64_t counted = 0;
    for (size_t t = 0; t < length; ++t) {
      const float token = compared->label[i * length + t];
      if (!(token >= 0 && token < static_cast<float>(layout->tokens))) continue;
      sum -= std::log(static_cast<double>(scores[layout->At(t, static_cast<size_t>(token))]));
      ++counted;
    }
    if (counted > 0) WriteLine(examples[i].name(), sum / static_cast<double>(counted));
    sum_ += sum, tokens_ += counted;
  }
}

std::string TextReport::Text(int /*worst*/, bool /*several*/) const {
  return format("\n{}: loss {:.4f}, perplexity {:.4g}, {:.4f} bits, of each of {}\n", head().name,
                loss(), std::exp(loss()), BitsOf(loss()), Counted(tokens_, "token"));
}

std::string TextReport::CsvLines(bool with_head) const {
  return format("{}{},{},{},{}\n",
                with_head ? report::QuoteCsv(report::ListedName(head().name)) + "," : "", loss(),
                std::exp(loss()), BitsOf(loss()), tokens_);
}

void TextReport::AddTo(Json* result, int /*worst*/, bool several) const {
  const Json own = {{"loss", loss()},
                    {"perplexity", std::exp(loss())},
                    {"bits_per_token", BitsOf(loss())},
                    {"tokens", tokens_}};
  if (several) {
    (*result)["text"][head().name] = own;
  } else {
    (*result)["text"] = own;
  }
}

}  // namespace mxtrain::tasks
