// SPDX-License-Identifier: Apache-2.0
#include "app/session/class_checks.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/class_counts.h"
#include "mxtrain/train/class_weights.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::session {
namespace {

// "cat 0.75, dog 1.5"; without names the numbers alone.
std::string ShortList(const std::vector<double>& values, const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  std::string text;
  for (size_t i = 0; i < values.size() && i < kShown; ++i) {
    text +=
        format("{}{}{:.4g}", i > 0 ? ", " : "", i < names.size() ? names[i] + " " : "", values[i]);
  }
  return values.size() > kShown ? text + ", ..." : text;
}

// By name; others have 1. Without class names, classes are called by their numbers.
std::vector<double> NamedWeights(const config::PatternNumbers& given, size_t classes,
                                 const std::vector<std::string>& class_names) {
  std::vector<std::string> names = class_names;
  for (size_t k = 0; class_names.empty() && k < classes; ++k) names.push_back(std::to_string(k));
  std::vector<double> weights(classes, 1);
  for (const auto& [name, weight] : given) {
    const auto found =
        std::find(names.begin(),
                  names.begin() + static_cast<ptrdiff_t>(std::min(classes, names.size())), name);
    const auto k = static_cast<size_t>(found - names.begin());
    if (k >= classes || k == names.size())
      Throw(ErrorKind::kConfig, "there is no class '{}'{}", name, DidYouMean(name, names));
    weights[k] = weight;
  }
  return weights;
}

// One for each class of the head.
std::vector<double> ClassWeights(const config::Config& config, const ClassifierHead& head,
                                 const DataSets& data) {
  const config::ClassWeights& given = config.train.class_weights;
  if (given.automatic && config.data.train.balanced) {
    Throw(ErrorKind::kConfig,
          "auto and data.train.balanced both compensate for class imbalance: keep one of the two");
  }
  if (given.automatic)
    return BalancedWeights(io::CountClasses(*data.opened(false), head.label, head.classes));
  const auto classes = static_cast<size_t>(head.classes);
  if (given.numbers.empty()) return NamedWeights(given.by_name, classes, data.class_names());
  if (given.numbers.size() != classes)
    Throw(ErrorKind::kConfig, "got {} numbers for the {} classes of the net", given.numbers.size(),
          classes);
  return given.numbers;
}

// Examples of each class; nothing for any other label.
std::optional<std::vector<int64_t>> CountsOf(const io::Source& source, const std::string& label,
                                             int64_t classes) {
  const std::vector<io::FieldSpec>& fields = source.label_fields();
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const io::FieldSpec& f) { return f.name == label; });
  if (field == fields.end() || field->kind != io::FieldKind::kValues || field->shape.Size() != 1)
    return std::nullopt;
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  io::Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    const float k = source.LabelOf(i, static_cast<size_t>(field - fields.begin()), &sample)[0];
    if (k >= 0 && k < static_cast<float>(classes)) ++counts[static_cast<size_t>(k)];
  }
  return counts;
}

// `examples`: also those whose labels are no classes.
std::optional<std::string> OddCounts(const std::vector<int64_t>& counts, int64_t examples,
                                     const std::vector<std::string>& names) {
  const auto name = [&](size_t k) { return k < names.size() ? names[k] : std::to_string(k); };
  std::vector<std::string> empty;
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) empty.push_back(format("'{}'", name(k)));
    if (counts[k] == examples) {
      return format(
          "data.train: all {} are of one class, '{}', so that there is nothing to tell apart",
          Counted(examples, "example"), name(k));
    }
  }
  if (empty.empty() || empty.size() == counts.size()) return std::nullopt;
  const bool counts_from_one = counts[0] == 0 && name(0) == "0";
  return format("data.train: no example of {} {}, of {}{}",
                empty.size() == 1 ? "class" : "the classes", FirstOf(empty, 8), counts.size(),
                counts_from_one
                    ? "; classes are numbered from 0: if the labels count from 1, subtract 1"
                    : "");
}

}  // namespace

std::vector<std::string> OddClasses(const io::Source& training, const config::Net& net) {
  std::vector<std::string> odd;
  const auto add = [&odd](const std::optional<std::string>& text) {
    if (text) odd.push_back(*text);
  };
  if (training.num_classes() > 0 && training.size() > 0 && training.ClassOf(0)) {
    std::vector<int64_t> counts(static_cast<size_t>(training.num_classes()));
    for (int64_t i = 0; i < training.size(); ++i)
      ++counts[static_cast<size_t>(*training.ClassOf(i))];
    add(OddCounts(counts, training.size(), training.class_names()));
    return odd;
  }
  const LossReport losses(net.symbol);
  const Symbol::Shapes shapes = net.symbol.InferShape(config::BatchShapes(net, 1));
  for (const LossReport::Head& head : losses.heads()) {
    if (head.kind != LossReport::Head::Kind::kSoftmax || head.label.empty() || !shapes.complete)
      continue;
    const TShape& scores = shapes.outputs[static_cast<size_t>(head.output)];
    if (scores.ndim() != 2) continue;
    if (const auto counts = CountsOf(training, head.label, scores[1]))
      add(OddCounts(*counts, training.size(), {}));
  }
  return odd;
}

void CheckClassCount(const std::vector<std::string>& class_names, const SessionView& session) {
  const config::Net& net = session.net;
  const LossReport loss(net.symbol);
  if (class_names.empty() || loss.heads().size() != 1 ||
      loss.heads()[0].kind != LossReport::Head::Kind::kSoftmax)
    return;
  const LossReport::Head& head = loss.heads()[0];
  const TShape output =
      net.symbol.InferShape(config::BatchShapes(net, session.config().data.batch_size))
          .outputs[static_cast<size_t>(head.output)];
  const auto classes = static_cast<int64_t>(class_names.size());
  if (output.ndim() != 2 || output[1] == classes) return;
  const std::string text = format("'{}' has {} classes, but the data has {} ({})", head.name,
                                  output[1], classes, FirstOf(class_names, 12));
  if (output[1] > classes)
    return session.log.Write(LogLevel::kWarning, text + "; the other outputs are unused");
  config::Diagnostic diagnostic =
      config::ToDiagnostic(net, Error(ErrorKind::kConfig, text), session.config().net.place);
  diagnostic.help = "set num_hidden: \"${classes}\" in the layer before it to follow the data";
  session.diagnostics.Add(diagnostic);
  session.diagnostics.ThrowIfErrors();
}

Symbol WithWeightsOfClasses(const SessionView& session, const OperatorRegistry& operators,
                            DataSets& data) {
  const config::Config& config = session.config();
  const config::Net& net = session.net;
  const config::ClassWeights& given = config.train.class_weights;
  if (given.empty() ||
      (given.numbers.empty() && !std::filesystem::exists(config.data.train.path())))
    return net.symbol;
  if (given.numbers.empty()) data.Open(false);
  Symbol weighted = net.symbol;
  try {
    const ClassifierHead head =
        FindClassifier(net.symbol, config::BatchShapes(net, std::max(config.data.batch_size, 1)));
    const std::vector<double> weights = ClassWeights(config, head, data);
    weighted = WithClassWeights(operators, net.symbol, head, weights);
    if (given.automatic)
      session.log.Write(LogLevel::kInfo,
                        format("class_weights: auto: {}", ShortList(weights, data.class_names())));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session.diagnostics.Error(session.loaded.PlaceOf("train.class_weights"),
                              format("train.class_weights: {}", e.what()));
  }
  session.diagnostics.ThrowIfErrors();
  return weighted;
}

}  // namespace mxtrain::session
