#include "app/commands/class_report.h"

#include <algorithm>
#include <iostream>

#include "app/report/output.h"
#include "mxtrain/base/format.h"

namespace mxtrain::commands {

using report::QuoteCsv;

void ClassReport::Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter) {
  const std::vector<DataDesc> labels = iter.provide_label();
  const auto found = std::find_if(labels.begin(), labels.end(), [this](const DataDesc& desc) { return desc.name == head_.label; });
  const NDArray& scores = outputs[static_cast<size_t>(head_.output)];
  if (found == labels.end() || scores.shape().ndim() != 2) return;
  const NDArray& label = batch.label[static_cast<size_t>(found - labels.begin())];
  if (label.shape().Size() != scores.shape()[0]) return;
  const int64_t classes = scores.shape()[1];
  if (counts_.empty()) counts_.assign(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes)));
  const std::vector<float> p = scores.ToVector(), y = label.ToVector();
  for (int64_t i = 0; i < batch.count; ++i) {
    const float* row = p.data() + i * classes;
    const int64_t truth = static_cast<int64_t>(y[static_cast<size_t>(i)]), guess = std::max_element(row, row + classes) - row;
    if (truth < 0 || truth >= classes) continue;
    ++counts_[static_cast<size_t>(truth)][static_cast<size_t>(guess)];
    if (each_) {
      const std::string name = iter.ExampleName(batch.index[static_cast<size_t>(i)]);
      if (each_with_head_) *each_ << QuoteCsv(head()) << ",";
      *each_ << format("{},{},{},{}\n", QuoteCsv(name), QuoteCsv(Name(truth)), QuoteCsv(Name(guess)), row[guess]);
    }
    if (guess != truth) mistakes_.push_back({row[guess], iter.ExampleName(batch.index[static_cast<size_t>(i)]), truth, guess});
  }
}

std::string ClassReport::Name(int64_t k) const {
  return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)] : std::to_string(k);
}

ClassReport::Row ClassReport::Of(size_t k) const {
  int64_t truths = 0, guesses = 0;
  for (size_t j = 0; j < counts_.size(); ++j) {
    truths += counts_[k][j];
    guesses += counts_[j][k];
  }
  const double hit = static_cast<double>(counts_[k][k]);
  const double precision = guesses ? hit / static_cast<double>(guesses) : 0, recall = truths ? hit / static_cast<double>(truths) : 0;
  return {precision, recall, precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0, truths};
}

void ClassReport::Print(int worst) {
  size_t width = 5;
  for (size_t k = 0; k < counts_.size(); ++k) width = std::max(width, Name(static_cast<int64_t>(k)).size());
  std::cout << format("\n{:<{}}  {:>9}  {:>7}  {:>7}  {:>8}\n", "class", width, "precision", "recall", "F1", "examples");
  for (size_t k = 0; k < counts_.size(); ++k) {
    const Row r = Of(k);
    std::cout << format("{:<{}}  {:>9.4f}  {:>7.4f}  {:>7.4f}  {:>8}\n", Name(static_cast<int64_t>(k)), width, r.precision, r.recall, r.f1,
                        r.examples);
  }
  if (counts_.size() <= 25) PrintConfusion(width);
  SortMistakes();
  if (!mistakes_.empty() && worst > 0) std::cout << "\nworst mistakes\n";
  for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
    const Mistake& m = mistakes_[i];
    std::cout << format("  {}: {} taken for {} ({:.3f})\n", m.name, Name(m.truth), Name(m.guess), m.score);
  }
}

void ClassReport::PrintConfusion(size_t width) const {
  std::cout << "\nconfusion matrix (rows: true class, columns: predicted)\n" << std::string(width, ' ');
  for (size_t k = 0; k < counts_.size(); ++k) std::cout << format(" {:>6}", Name(static_cast<int64_t>(k)).substr(0, 6));
  std::cout << "\n";
  for (size_t k = 0; k < counts_.size(); ++k) {
    std::cout << format("{:<{}}", Name(static_cast<int64_t>(k)), width);
    for (int64_t n : counts_[k]) std::cout << format(" {:>6}", n);
    std::cout << "\n";
  }
}

void ClassReport::PrintCsv(bool with_head) const {
  for (size_t k = 0; k < counts_.size(); ++k) {
    const Row r = Of(k);
    if (with_head) std::cout << QuoteCsv(head()) << ",";
    std::cout << format("{},{},{},{},{}\n", QuoteCsv(Name(static_cast<int64_t>(k))), r.precision, r.recall, r.f1, r.examples);
  }
}

Json ClassReport::ToJson(int worst) {
  Json classes = Json::array(), mistakes = Json::array();
  for (size_t k = 0; k < counts_.size(); ++k) {
    const Row r = Of(k);
    classes.push_back({{"name", Name(static_cast<int64_t>(k))},
                       {"precision", r.precision},
                       {"recall", r.recall},
                       {"f1", r.f1},
                       {"examples", r.examples}});
  }
  SortMistakes();
  for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
    const Mistake& m = mistakes_[i];
    mistakes.push_back({{"example", m.name}, {"true", Name(m.truth)}, {"predicted", Name(m.guess)}, {"score", m.score}});
  }
  return {{"classes", classes}, {"confusion", counts_}, {"worst_mistakes", mistakes}};
}

void ClassReport::SortMistakes() {
  std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) { return a.score > b.score; });
}

std::vector<ClassReport> ClassReportsOf(const Symbol& symbol, const std::vector<std::string>& classes) {
  std::vector<ClassReport> reports;
  const LossReport losses(symbol);
  const auto other_label = [&losses](const LossReport::Head& head) {  // beside losses without one
    return std::any_of(losses.heads().begin(), losses.heads().end(),
                       [&head](const LossReport::Head& other) { return !other.label.empty() && other.label != head.label; });
  };
  for (const LossReport::Head& head : losses.heads()) {
    if (head.kind != LossReport::Head::Kind::kSoftmax) continue;
    reports.emplace_back(head, other_label(head) ? std::vector<std::string>() : classes);
  }
  return reports;
}

}  // namespace mxtrain::commands
