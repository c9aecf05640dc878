// SPDX-License-Identifier: Apache-2.0
#include "app/commands/answers.h"

#include <algorithm>
#include <map>

#include "app/commands/class_report.h"
#include "app/commands/open_model.h"
#include "app/commands/value_report.h"
#include "mxtrain/base/error.h"
#include "mxtrain/train/evaluation.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {
namespace {

constexpr int64_t kMostValues = 256;  // longest list that is printed

class Finder {
 public:
  Finder(const Model& model, const session::PipelineSpec& run)
      : model_(model), run_(run), losses_(model.symbol) {}

  // Nothing if the output is not a prediction; *why then gives the reason, unless it is the value
  // of a loss.
  std::optional<AnswerHead> Find(int output, const std::string& name, const TShape& shape,
                                 std::string* why) const {
    const LossReport::Head* loss = nullptr;
    for (const LossReport::Head& head : losses_.heads()) {
      if (head.output == output) loss = &head;
    }
    if (loss && loss->label.empty()) return std::nullopt;
    const int64_t width = shape.Product(1, shape.ndim());
    const bool classes = loss ? loss->kind == LossReport::Head::Kind::kSoftmax && width > 1
                              : IsClassifier(output, width);
    // Not an image, and not a class per pixel.
    const bool is_list = shape.ndim() <= 2 || width == shape[1];
    if (!is_list || (!classes && width > kMostValues)) {
      *why = format(
          "'{}' gives {} for an example", name,
          TShape(std::span(shape.begin() + 1, static_cast<size_t>(shape.ndim() - 1))).ToString());
      return std::nullopt;
    }
    AnswerHead head{name, output, Answer::kValues, ClassNames({}), width, std::nullopt};
    const std::string label = loss ? loss->label : LabelOf(name);
    if (classes) {
      head.answer = Answer::kOneClass;
      head.names = ClassNames(ClassNamesOf(losses_, label, model_.info.class_names, run_));
    } else if (loss && loss->kind == LossReport::Head::Kind::kLogistic && width > 1) {
      head.answer = Answer::kAnyClasses;
      head.names = ClassNames(model_.info.class_names);
    } else {
      head.names = ClassNames(ValueNames(loss, label, width));
      head.units = run_.UnitsOf(label);
    }
    return head;
  }

 private:
  // For an output without a loss: probabilities, or as many scores as the model has names.
  bool IsClassifier(int output, int64_t width) const {
    if (width < 2) return false;
    const Graph& graph = model_.symbol.graph();
    const Node* node =
        &graph.nodes[static_cast<size_t>(graph.heads[static_cast<size_t>(output)].node)];
    while (node->op && node->op->TypeString() == "BlockGrad")
      node = &graph.nodes[static_cast<size_t>(node->inputs[0].node)];
    const std::string op = node->op ? node->op->TypeString() : "";
    return op == "SoftmaxActivation" || op == "SoftmaxOutput" || op == "softmax" ||
           static_cast<int64_t>(model_.info.class_names.size()) == width;
  }

  // The label that a metric of the run compares with this output.
  std::string LabelOf(const std::string& name) const {
    for (const MetricSpec& metric : run_.metrics) {
      if (HeadName(metric.output) == name) return metric.label;
    }
    return "";
  }

  // The columns of the table that the model was trained on; else numbers from 1.
  std::vector<std::string> ValueNames(const LossReport::Head* loss, const std::string& label,
                                      int64_t width) const {
    std::vector<std::string> names = loss ? NamesOfValues(*loss, {}, run_) : run_.ColumnsOf(label);
    if (static_cast<int64_t>(names.size()) == width) return names;
    names.clear();
    for (int64_t k = 1; k <= width; ++k)
      names.push_back(width == 1 ? "value" : format("value_{}", k));
    return names;
  }

  const Model& model_;
  const session::PipelineSpec& run_;
  const LossReport losses_;
};

}  // namespace

std::string ClassNames::operator[](int64_t k) const {
  return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)]
                                                : std::to_string(k);
}

bool ClassNames::Contains(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::vector<AnswerHead> AnswersOf(const Model& model, const session::PipelineSpec& run,
                                  int64_t batch, report::Console& console) {
  const Finder finder(model, run);
  const std::vector<std::string> names = model.symbol.ListOutputs();
  const std::vector<TShape> shapes = OutputShapes(model, batch);
  std::vector<AnswerHead> heads;
  std::vector<std::string> others;
  std::string first;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string why;
    if (auto head = finder.Find(static_cast<int>(i), HeadName(names[i]), shapes[i], &why))
      heads.push_back(std::move(*head));
    if (first.empty() && !why.empty()) first = HeadName(names[i]);
    if (!why.empty()) others.push_back(std::move(why));
  }
  const std::string advice = format("--output-layer {} --output FILE.npy writes it as numbers",
                                    first.empty() ? "NAME" : first);
  if (heads.empty() && others.empty()) {
    Throw(ErrorKind::kUsage,
          "{}: the net outputs only the value of its loss, no prediction; write the output of a "
          "layer with --output-layer NAME --output FILE.npy",
          model.file);
  }
  if (heads.empty())
    Throw(ErrorKind::kUsage, "{}: {}, which is neither class scores nor a short list of values; {}",
          model.file, join(others, ", "), advice);
  if (!others.empty())
    console.Message(LogLevel::kInfo, format("skipped: {}; {}", join(others, ", "), advice));
  return heads;
}

}  // namespace mxtrain::commands
