// SPDX-License-Identifier: Apache-2.0
#include "app/console/progress_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/report/output.h"
#include "app/report/process_memory.h"
#include "mxtrain/base/format.h"

namespace mxtrain::console {
namespace {

constexpr size_t kColumns = 100;

// Three significant digits.
std::string RateText(double rate) {
  return format("{:.{}f}", rate, rate >= 100 ? 0 : rate >= 10 ? 1 : 2);
}

std::string EpochText(int64_t epoch, int64_t epochs) {
  const std::string all = std::to_string(epochs);
  return format("epoch {:>{}}/{}", epoch, all.size(), all);
}

int DecimalsFor(int64_t examples) {
  return examples < 100 ? 2 : examples < 100'000 ? 3 : 4;
}

// Metrics that some losses are.
bool IsLoss(const std::string& metric) {
  return metric == "cross_entropy" || metric == "mse" || metric == "mae";
}

std::vector<std::string> Scores(const NamedValues& values, int64_t examples) {
  std::vector<std::string> texts;
  double loss = NAN;
  for (const auto& [name, value] : values) {
    if (name == "loss") loss = value;
    if (IsLoss(name) && std::abs(value - loss) <= 1e-6 * std::abs(loss)) continue;
    texts.push_back(
        format("{} {:<{}}", name, ScoreText(value, examples), DecimalsFor(examples) + 2));
  }
  return texts;
}

// Of dist_async; empty otherwise.
std::string StalenessText(const std::vector<int64_t>& updates) {
  int64_t all = 0, sum = 0, most = 0;
  for (size_t s = 0; s < updates.size(); ++s) {
    all += updates[s];
    sum += static_cast<int64_t>(s) * updates[s];
    if (updates[s] > 0) most = static_cast<int64_t>(s);
  }
  return all == 0 ? ""
                  : format("staleness {:.1f}, at most {}",
                           static_cast<double>(sum) / static_cast<double>(all), most);
}

// Ends lines where the next item would not fit; those that follow are indented below the first
// item.
void Append(std::vector<std::string>* lines, std::string head,
            const std::vector<std::string>& items) {
  const std::string indent(head.size(), ' ');
  std::string line = std::move(head), gap;
  for (const std::string& item : items) {
    if (!gap.empty() && line.size() + gap.size() + item.size() > kColumns) {
      lines->push_back(std::exchange(line, indent));
      gap.clear();
    }
    line += gap + item;
    gap = "  ";
  }
  lines->push_back(line);
}

}  // namespace

std::string ScoreText(double value, int64_t examples) {
  if (value == 0 || !std::isfinite(value)) return format("{}", value);
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6 || magnitude < 1e-5) return format("{:.1e}", value);
  const int before = std::max(0, static_cast<int>(std::floor(std::log10(magnitude))));
  const int zeros = std::max(0, static_cast<int>(-std::floor(std::log10(magnitude))) - 1);
  return format("{:.{}f}", value,
                std::max({DecimalsFor(examples) - before, zeros > 0 ? zeros + 2 : 0, 0}));
}

std::vector<std::string> PartsOf(const StepEvent& e, const std::string& examples, int64_t trained) {
  const double done =
      static_cast<double>(e.step) / static_cast<double>(std::max<int64_t>(e.total_steps, 1));
  const std::string left = report::FormatDuration(e.seconds_left) + " left";
  return {EpochText(e.epoch + 1, e.epochs),
          format("step {}/{}", e.step_in_epoch, e.steps_per_epoch),
          format("{:.0f} %", std::floor(100 * done)),
          "loss " + ScoreText(e.loss, trained),
          e.epochs > 1
              ? format("{}, {} in the epoch", left, report::FormatDuration(e.epoch_seconds_left))
              : left,
          "lr " + report::FormatNumber(e.lr),
          format("{} {}/s", RateText(e.images_per_second), examples),
          FormatBytes(report::CurrentMemoryBytes()),
          format("waiting {:.0f} %", 100 * e.wait_share)};
}

std::vector<std::string> PartsOf(const ValidationEvent& e, const std::string& examples) {
  std::vector<std::string> parts = {EpochText(e.epoch + 1, e.epochs),
                                    format("validating {}/{} {}", e.examples, e.total, examples),
                                    format("{:.0f} %", std::floor(100 * e.done))};
  if (e.examples > 0)
    parts.push_back(format("{} left, {} in the validation",
                           report::FormatDuration(e.run_seconds_left),
                           report::FormatDuration(e.seconds_left)));
  return parts;
}

std::vector<std::string> EpochLines::Of(const EpochEvent& e) {
  const std::string head = EpochText(e.epoch, std::max(e.epochs, e.epoch)) + "  ";
  const std::vector<std::string> train = Scores(e.train, trained_), val = Scores(e.val, validated_);
  std::vector<std::string> more = {report::FormatDuration(e.seconds),
                                   format("{:>5}/s", RateText(e.images_per_second))};
  if (e.loss_scale > 0)
    more.push_back(format("loss scale {:g}, {} steps skipped", e.loss_scale, e.steps_skipped));
  if (const std::string staleness = StalenessText(e.staleness); !staleness.empty())
    more.push_back(staleness);
  if (e.best) more.emplace_back("best");

  std::vector<std::string> line = train, lines;
  if (!val.empty() && !several_) {
    line.push_back("val: " + val[0]);
    line.insert(line.end(), val.begin() + 1, val.end());
  }
  if (val.empty() || !several_) {
    line.insert(line.end(), more.begin(), more.end());
    Append(&lines, head + "train: ", line);
    if (val.empty() || lines.size() == 1) return lines;
    several_ = true;
    lines.clear();
  }
  Append(&lines, head + "train: ", train);
  line = val;
  line.insert(line.end(), more.begin(), more.end());
  Append(&lines, std::string(head.size(), ' ') + "val:   ", line);
  return lines;
}

}  // namespace mxtrain::console
