// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/loss_report.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "mxtrain/base/error.h"
#include "mxtrain/ndarray/as_float32.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain {
namespace {

constexpr double kNothingAdded = std::numeric_limits<double>::quiet_NaN();

// The variable that is the label of a loss, "" if the net computes that, or it is one of `others`.
std::string LabelName(const Graph& graph, const Node& loss, const std::set<std::string>& others) {
  const size_t label = HasLabel(loss) ? 1 : 2;
  const Node* node = &graph.nodes[static_cast<size_t>(loss.inputs[label].node)];
  while (KeepsValues(*node)) node = &graph.nodes[static_cast<size_t>(node->inputs[0].node)];
  return node->is_variable() && !others.contains(node->name) ? node->name : "";
}

// kMean for all operators but those that output predictions, and read a label for their gradients,
// and those that output losses of rows.
LossReport::Head::Kind KindOf(const OperatorProperty& op) {
  using Kind = LossReport::Head::Kind;
  const std::string type = op.TypeString();
  return type == "SoftmaxOutput"              ? Kind::kSoftmax
         : type == "LinearRegressionOutput"   ? Kind::kLinear
         : type == "LogisticRegressionOutput" ? Kind::kLogistic
         : type == "MAERegressionOutput"      ? Kind::kAbsolute
         : type == "linear_cross_entropy"     ? Kind::kRows
                                              : Kind::kMean;
}

// The loss of class k with probability p, for the label k.
double TermOf(const LossReport::Head& head, int64_t k, double p) {
  if (std::isnan(p)) return p;
  const double weight =
      head.class_weights.empty() ? 1.0 : head.class_weights[static_cast<size_t>(k)];
  return -weight * std::pow(std::max(1 - p, 0.0), head.focal_gamma) * std::log(std::max(p, 1e-30));
}

// The sum of TermOf over all classes, `stride` apart.
double SumOfTerms(const LossReport::Head& head, const float* p, int64_t classes, int64_t stride) {
  double sum = 0;
  if (!head.class_weights.empty() || head.focal_gamma > 0) {
    for (int64_t k = 0; k < classes; ++k) sum += TermOf(head, k, p[k * stride]);
    return sum;
  }
  constexpr int64_t kFactors = 8;  // one logarithm for this many: their product is at least 1e-240
  for (int64_t k = 0; k < classes; k += kFactors) {
    double product = 1;
    for (int64_t j = k; j < std::min(k + kFactors, classes); ++j)
      product *= std::max<double>(p[j * stride], 1e-30);
    sum -= std::log(product);
  }
  return sum;
}

// The loss of the label k: weight 1 - smoothing, the rest spread over the other classes.
double LossOfLabel(const LossReport::Head& head, const float* p, int64_t k, int64_t classes,
                   int64_t stride) {
  const double named = TermOf(head, k, p[k * stride]);
  if (head.smoothing == 0 || classes == 1) return named;
  const double other = head.smoothing / static_cast<double>(classes - 1);
  return (1 - head.smoothing - other) * named + other * SumOfTerms(head, p, classes, stride);
}

// Labels of a head have a value per output, or per position of a softmax, or its probabilities. A
// label of another size must not be read.
void CheckLabelSize(const LossReport::Head& head, const TBlob& output, const TBlob& label) {
  int64_t wanted = output.Size();
  if (head.kind == LossReport::Head::Kind::kSoftmax && label.shape != output.shape) {
    const int axis = head.class_axis_1 ? 1 : output.shape.ndim() - 1;
    wanted /= std::max<int64_t>(output.shape[axis], 1);
  }
  if (label.Size() == wanted) return;
  Throw(ErrorKind::kConfig, "'{}': outputs of shape {} need {} label values, but '{}' has shape {}",
        head.name, output.shape.ToString(), wanted, head.label, label.shape.ToString());
}

// Of the rows of an output, which has as many for each example.
class RowWeights {
 public:
  RowWeights() = default;
  RowWeights(const TBlob& weights, int64_t rows)
      : weights_(weights.dptr<float>()), rows_(rows / std::max<int64_t>(weights.Size(), 1)) {}
  double operator[](int64_t row) const { return weights_ ? double{weights_[row / rows_]} : 1; }
  bool any() const { return weights_; }
  int64_t rows() const { return rows_; }  // of an example

 private:
  const float* weights_ = nullptr;
  int64_t rows_ = 1;
};

// The sums with the means of the rows of the first `count` examples.
LossReport::Sum AddMeans(LossReport::Sum sum, std::span<const float> values, int64_t per_row,
                         int64_t count, const RowWeights& weights) {
  const double of_example = static_cast<double>(weights.rows() * per_row);
  for (int64_t n = 0; n < count; ++n) {
    const double w = weights[n * weights.rows()];
    if (w == 0) continue;
    double total = 0;
    for (int64_t i = 0; i < weights.rows() * per_row; ++i)
      total += values[static_cast<size_t>(n * weights.rows() * per_row + i)];
    sum.loss += of_example > 0 ? w * total / of_example : 0;
    sum.weight += w;
  }
  return sum;
}

double RegressionLoss(LossReport::Head::Kind kind, float p, float y) {
  using Kind = LossReport::Head::Kind;
  const double difference = static_cast<double>(p) - y;
  if (kind == Kind::kLinear) return 0.5 * difference * difference;
  if (kind == Kind::kAbsolute) return std::abs(difference);
  if (std::isnan(p)) return p;
  const double q = std::clamp<double>(p, 1e-12, 1 - 1e-12);
  return -(y * std::log(q) + (1 - y) * std::log(1 - q));
}

// p: probabilities with the classes on the axis before `inner`; labels: one per row and inner
// position, or probabilities like p.
double CrossEntropy(const LossReport::Head& head, const TBlob& p, const TBlob& label, int64_t count,
                    const RowWeights& weights, double* weight) {
  const int axis = head.class_axis_1 ? 1 : p.shape.ndim() - 1;
  const int64_t classes = p.shape[axis],
                inner = head.class_axis_1 ? p.shape.Product(2, p.shape.ndim()) : 1;
  const int64_t rows = count * (head.class_axis_1 ? 1 : p.shape.Product(1, axis));
  const float* y = label.dptr<float>();
  const float* prob = p.dptr<float>();
  double loss = 0;
  const bool soft = label.shape == p.shape && label.Size() != p.Size() / classes;
  const int64_t of_row = count > 0 ? rows / count : 1;
  for (int64_t r = 0; r < rows; ++r) {
    const double w = weights[r / of_row];
    if (w == 0) continue;
    for (int64_t i = 0; i < inner; ++i) {
      const float* row = prob + r * classes * inner + i;
      if (soft) {
        for (int64_t k = 0; k < classes; ++k)
          loss += w * y[r * classes * inner + k * inner + i] * TermOf(head, k, row[k * inner]);
        *weight += w;
        continue;
      }
      const float named = y[r * inner + i];
      const int64_t k = std::abs(named) < 1e9f ? static_cast<int64_t>(named) : -1;  // NaN too
      if (head.ignores && k == static_cast<int64_t>(head.ignore_label)) continue;
      if (!(k >= 0 && k < classes)) {
        Throw(ErrorKind::kData, "'{}': the label {} is outside the {} classes", head.name,
              y[r * inner + i], classes);
      }
      *weight += w;
      loss += w * LossOfLabel(head, row, k, classes, inner);
    }
  }
  return loss;
}

// Whether the node's output is the value of a loss, no prediction: MakeLoss, PointBoxLoss.
bool IsValueOfLoss(const Node& node) {
  return IsLoss(node) && !HasLabel(node);
}

// The variables that the values of those outputs depend on whose nodes are as asked for.
std::set<std::string> VariablesReadBy(const Graph& graph,
                                      const std::function<bool(const Node&)>& is_asked_for) {
  std::vector<bool> read(graph.nodes.size());
  for (const NodeEntry& head : graph.heads) {
    const auto id = static_cast<size_t>(head.node);
    if (is_asked_for(graph.nodes[id])) read[id] = true;
  }
  std::set<std::string> names;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (!read[id]) continue;
    if (node.is_variable()) names.insert(node.name);
    const bool has_label = HasLabel(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!(has_label && i == 1)) read[static_cast<size_t>(node.inputs[i].node)] = true;
    }
  }
  return names;
}

// The variables that are no labels: predictions depend on them, or gradients reach them. Values of
// other losses may depend on a label.
std::set<std::string> NoLabels(const Symbol& symbol) {
  std::set<std::string> names =
      VariablesReadBy(symbol.graph(), [](const Node& node) { return !IsValueOfLoss(node); });
  names.merge(VariablesTrained(symbol));
  return names;
}

}  // namespace

LossReport::LossReport(const Symbol& symbol) {
  const Graph& graph = symbol.graph();
  const std::set<std::string> no_labels = NoLabels(symbol);
  for (size_t i = 0; i < graph.heads.size(); ++i) {
    const Node& node = graph.nodes[graph.heads[i].node];
    if (!node.op || node.op->NeedsHeadGradient()) continue;
    if (node.op->TypeString() == "BlockGrad") continue;
    Head head;
    head.name = node.name;
    head.output = static_cast<int>(i);
    head.kind = KindOf(*node.op);
    if (const std::string scale = ParamOf(*node.op, "grad_scale"); !scale.empty())
      params::Parse(scale, &head.scale);
    if (head.kind == Head::Kind::kSoftmax || head.kind == Head::Kind::kRows) {
      head.ignores = ParamOf(*node.op, "use_ignore") == "True";
      params::Parse(ParamOf(*node.op, "ignore_label"), &head.ignore_label);
    }
    if (head.kind == Head::Kind::kSoftmax) {
      head.class_axis_1 = ParamOf(*node.op, "multi_output") == "True";
      if (const std::string weights = ParamOf(*node.op, "class_weights"); !weights.empty())
        params::Parse(weights, &head.class_weights);
      if (const std::string gamma = ParamOf(*node.op, "focal_gamma"); !gamma.empty())
        params::Parse(gamma, &head.focal_gamma);
      const std::string smoothing = ParamOf(*node.op, "smooth_alpha");
      if (!head.class_axis_1 && !smoothing.empty()) params::Parse(smoothing, &head.smoothing);
    }
    if (head.kind != Head::Kind::kMean) {
      head.label = LabelName(graph, node, no_labels);
      if (head.label.empty()) head.kind = Head::Kind::kUnknown;
    }
    heads_.push_back(head);
  }
  sums_.resize(heads_.size());
}

void LossReport::Update(int h, const TBlob& output, const TBlob* label, int64_t count,
                        const TBlob* weights) {
  const Head& head = heads_[h];
  RequireHostFloat32(output, "loss", head.name);
  if (label) {
    RequireHostFloat32(*label, "loss", head.name);
    CheckLabelSize(head, output, *label);
  }
  Sum& sum = sums_[h];
  const int64_t batch = output.shape.ndim() > 0 ? output.shape[0] : 1;
  if (head.kind == Head::Kind::kUnknown) {
    const std::span values(output.dptr<float>(), static_cast<size_t>(output.Size()));
    const bool finite = std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
    if (!finite) sum.loss = kNothingAdded;  // diverges
    return;
  }
  RowWeights weight_of;
  if (weights) {
    RequireHostFloat32(*weights, "loss", head.name);
    // A head without a batch axis has no examples to weigh.
    if (weights->Size() > 0 && batch % weights->Size() == 0) weight_of = {*weights, batch};
  }
  // A label reshaped to several rows for each example.
  if (label && label->shape.ndim() > 0 && label->shape[0] > 0 && batch % label->shape[0] == 0)
    count *= batch / label->shape[0];
  if (head.kind == Head::Kind::kSoftmax) {
    sum.loss += CrossEntropy(head, output, *label, count, weight_of, &sum.weight);
    return;
  }
  const float* p = output.dptr<float>();
  const int64_t per_example = batch > 0 ? output.Size() / batch : 0;
  if (head.kind == Head::Kind::kMean) {
    // A head without a batch axis (a sum over it) counts unchanged.
    if (weight_of.any()) {
      sum = AddMeans(sum, {p, static_cast<size_t>(output.Size())}, per_example, count, weight_of);
      return;
    }
    const int64_t n = batch >= count ? count * per_example : output.Size();
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += p[i];
    sum.loss += n > 0 ? total / static_cast<double>(n) * static_cast<double>(count) : 0;
    sum.weight += static_cast<double>(count);
    return;
  }
  const float* y = label->dptr<float>();
  if (head.kind == Head::Kind::kRows) {
    for (int64_t i = 0; i < count * per_example; ++i) {
      const double w = weight_of[i / per_example];
      if (w == 0) continue;
      if (head.ignores && y[i] == static_cast<float>(head.ignore_label)) continue;
      if (!(y[i] >= 0)) {
        Throw(ErrorKind::kData, "'{}': the label {} is no class", head.name, y[i]);
      }
      sum.loss += w * p[i];
      sum.weight += w;
    }
    return;
  }
  for (int64_t row = 0; row < count; ++row) {
    const double w = weight_of[row];
    if (w == 0) continue;
    for (int64_t i = row * per_example; i < (row + 1) * per_example; ++i)
      sum.loss += w * RegressionLoss(head.kind, p[i], y[i]);
    sum.weight += w;
  }
}

void LossReport::Reset() {
  sums_.assign(heads_.size(), {});
}

bool LossReport::has_values() const {
  return std::ranges::any_of(heads_,
                             [](const Head& head) { return head.kind != Head::Kind::kUnknown; });
}

double LossReport::Mean(int h) const {
  return sums_[h].weight > 0 ? sums_[h].loss / sums_[h].weight : kNothingAdded;
}

bool LossReport::Diverges(int h) const {
  return !std::isfinite(sums_[h].loss);
}

double LossReport::Total() const {
  return TotalSince(Sums(sums_.size()));
}

double LossReport::TotalSince(const Sums& before) const {
  double total = 0;
  bool known = false;
  for (size_t h = 0; h < sums_.size(); ++h) {
    const double weight = sums_[h].weight - before[h].weight;
    if (!(weight > 0)) continue;
    total += heads_[h].scale * (sums_[h].loss - before[h].loss) / weight;
    known = true;
  }
  return known ? total : kNothingAdded;
}

// Doubles as their bits, so nothing is lost.
std::string LossReport::SaveState() const {
  std::string text;
  for (const Sum& s : sums_)
    text += format("{:016x} {:016x} ", std::bit_cast<uint64_t>(s.loss),
                   std::bit_cast<uint64_t>(s.weight));
  return text;
}

LossReport::Sums LossReport::ParseState(const std::string& text) const {
  if (text.size() != sums_.size() * 34)
    Throw(ErrorKind::kData, "the saved loss belongs to another net");
  auto read = [&](size_t at) {
    uint64_t bits = 0;
    std::from_chars(text.data() + at, text.data() + at + 16, bits, 16);
    return std::bit_cast<double>(bits);
  };
  Sums sums;
  for (size_t h = 0; h < sums_.size(); ++h) sums.push_back({read(h * 34), read(h * 34 + 17)});
  return sums;
}

void LossReport::RestoreState(const std::string& text) {
  sums_ = ParseState(text);
}

void LossReport::Merge(const std::string& state) {
  const Sums other = ParseState(state);
  for (size_t h = 0; h < sums_.size(); ++h) {
    sums_[h].loss += other[h].loss;
    sums_[h].weight += other[h].weight;
  }
}

bool IsLoss(const Node& node) {
  return node.op && !node.op->NeedsHeadGradient() && node.op->TypeString() != "BlockGrad";
}

bool KeepsValues(const Node& node) {
  const std::string type = node.op ? node.op->TypeString() : "";
  return type == "Reshape" || type == "reshape_like" || type == "Flatten" ||
         type == "expand_dims" || type == "squeeze" || type == "BlockGrad";
}

bool HasLabel(const Node& node) {
  if (!node.op) return false;
  const LossReport::Head::Kind kind = KindOf(*node.op);
  return kind != LossReport::Head::Kind::kMean && kind != LossReport::Head::Kind::kRows;
}

std::set<std::string> VariablesRead(const Symbol& symbol) {
  return VariablesReadBy(symbol.graph(), [](const Node&) { return true; });
}

namespace {

// What makes the value of a head that is a loss, or that MakeLoss makes one; null if it is none.
const Node* LossOf(const Graph& graph, const NodeEntry& head) {
  const Node* node = &graph.nodes[static_cast<size_t>(head.node)];
  const auto is_made = [](const Node& n) { return n.op && n.op->TypeString() == "MakeLoss"; };
  if (!is_made(*node)) return node->op && !node->op->NeedsHeadGradient() ? node : nullptr;
  while (is_made(*node) || KeepsValues(*node))
    node = &graph.nodes[static_cast<size_t>(node->inputs[0].node)];
  return node->op ? node : nullptr;
}

}  // namespace

std::map<int, std::string> LabelsBesideLosses(const Symbol& symbol) {
  const Graph& graph = symbol.graph();
  std::map<std::vector<NodeEntry>, std::string> label_of;  // by the other inputs of the loss
  for (const NodeEntry& head : graph.heads) {
    const Node* const loss = LossOf(graph, head);
    if (!loss || HasLabel(*loss)) continue;
    const auto input = [&](int i) -> const Node& {
      return graph.nodes[static_cast<size_t>(loss->inputs[static_cast<size_t>(i)].node)];
    };
    // The first variable without a gradient: anchors are computed, lengths follow the label.
    int at = 0;
    while (at < loss->num_args && (loss->op->HasGradient(at) || !input(at).is_variable())) ++at;
    if (at == 0 || at == loss->num_args) continue;
    std::vector<NodeEntry> others(loss->inputs.begin(), loss->inputs.begin() + loss->num_args);
    others.erase(others.begin() + at);
    label_of[others] = input(at).name;
  }
  std::map<int, std::string> labels;
  if (label_of.empty()) return labels;
  for (size_t i = 0; i < graph.heads.size(); ++i) {
    // Along the first inputs, as predictions are sorted and cut.
    for (const Node* node = &graph.nodes[static_cast<size_t>(graph.heads[i].node)];
         !node->is_variable() && !node->inputs.empty();
         node = &graph.nodes[static_cast<size_t>(node->inputs[0].node)]) {
      const auto found = label_of.find(node->inputs);
      if (found == label_of.end()) continue;
      labels[static_cast<int>(i)] = found->second;
      break;
    }
  }
  return labels;
}

std::set<std::string> VariablesTrained(const Symbol& symbol) {
  const Graph& graph = symbol.graph();
  std::vector<bool> reached(graph.nodes.size());
  for (const NodeEntry& head : graph.heads) {
    const Node& node = graph.nodes[static_cast<size_t>(head.node)];
    if (node.op && !node.op->NeedsHeadGradient()) reached[static_cast<size_t>(head.node)] = true;
  }
  std::set<std::string> names;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (!reached[id]) continue;
    if (node.kind == Node::Kind::kVariable) names.insert(node.name);
    for (int i = 0; node.op && i < node.num_args; ++i) {
      if (node.op->HasGradient(i))
        reached[static_cast<size_t>(node.inputs[static_cast<size_t>(i)].node)] = true;
    }
  }
  return names;
}

double RescaleGrad(const Symbol& symbol, int64_t batch_size, int parts, std::string* reason) {
  const Graph& graph = symbol.graph();
  int normalised = 0, losses = 0;
  for (const NodeEntry& entry : graph.heads) {
    const Node& node = graph.nodes[entry.node];
    if (!IsLoss(node)) continue;
    ++losses;
    const std::string normalization = ParamOf(*node.op, "normalization");
    if (normalization == "batch" || normalization == "valid") ++normalised;
  }
  if (losses > 0 && normalised == losses) {
    *reason = "every loss normalises itself";
    return 1.0 / parts;
  }
  *reason = normalised == 0 ? format("1 / batch of {}", batch_size)
                            : format(
                                  "1 / batch of {}, although {} of {} losses normalise themselves: "
                                  "give them one `normalization`",
                                  batch_size, normalised, losses);
  return 1.0 / static_cast<double>(batch_size);
}

SoftLabelSpec FindSoftLabels(const Symbol& symbol,
                             const std::map<std::string, TShape>& input_shapes) {
  const LossReport losses(symbol);
  const bool one_softmax =
      losses.heads().size() == 1 && losses.heads()[0].kind == LossReport::Head::Kind::kSoftmax;
  if (!one_softmax)
    Throw(ErrorKind::kConfig,
          "labels that are distributions need a net with one loss, SoftmaxOutput");
  const LossReport::Head& head = losses.heads()[0];
  const TShape output = symbol.InferShape(input_shapes).outputs[static_cast<size_t>(head.output)];
  if (head.class_axis_1 || output.ndim() != 2)
    Throw(ErrorKind::kConfig, "labels that are distributions need one class per image");
  const OperatorProperty& op =
      *symbol.graph().nodes[symbol.graph().heads[static_cast<size_t>(head.output)].node].op;
  if (head.ignores || ParamOf(op, "normalization") != "null") {
    Throw(ErrorKind::kConfig,
          "'{}' has use_ignore or normalization, which labels that are distributions do not "
          "support: remove them",
          head.name);
  }
  SoftLabelSpec spec;
  spec.classes = static_cast<int>(output[1]);
  params::Parse(ParamOf(op, "smooth_alpha"), &spec.smoothing);
  return spec;
}

}  // namespace mxtrain
