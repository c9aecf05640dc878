// SPDX-License-Identifier: Apache-2.0
#include "app/session/class_checks.h"

#include <algorithm>
#include <filesystem>

#include "app/session/head_tasks.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/class_counts.h"
#include "mxtrain/train/class_weights.h"

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

}  // namespace

void CheckClassCount(const std::vector<std::string>& class_names, const SessionView& session) {
  const auto tasks = TasksOf(session, class_names);
  if (tasks.size() != 1) return;  // of several heads, which of them the names are for is not known
  const auto finding = tasks.front()->CompareClasses(class_names);
  if (!finding) return;
  if (finding->level == LogLevel::kWarning)
    return session.log.Write(LogLevel::kWarning, finding->text);
  config::Diagnostic diagnostic = config::ToDiagnostic(
      session.net, Error(ErrorKind::kConfig, finding->text), session.config().net.place);
  diagnostic.help = finding->help;
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
