// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/evaluation.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/ndarray/as_float32.h"

namespace mxtrain {
namespace {

// "softmax" and "softmax_output" both name the head.
int FindOutput(const Symbol& symbol, const std::string& wanted) {
  const std::vector<std::string> names = symbol.ListOutputs();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted || names[i] == wanted + "_output") return static_cast<int>(i);
  }
  Throw(ErrorKind::kConfig,
        "a metric names output '{}', which the net does not have{}; its outputs are {}", wanted,
        DidYouMean(wanted, names), join(names, ", "));
}

std::vector<float> Restored(const TBlob& blob, const Standardization& units) {
  std::vector<float> values(blob.dptr<float>(), blob.dptr<float>() + blob.Size());
  units.Restore(&values);
  return values;
}

// Classification metrics whose shapes alone do not tell a regression from a classification.
void RequireClassifier(const Metric& metric, const LossReport::Head& head) {
  using Kind = LossReport::Head::Kind;
  if (head.kind != Kind::kLinear && head.kind != Kind::kAbsolute) return;
  if (metric.name() != "auc" && !metric.name().starts_with("multilabel_")) return;
  Throw(ErrorKind::kConfig,
        "metric {} is for classification, but '{}' is a regression; use rmse, mae, mse or r2",
        metric.name(), head.name);
}

// What a metric compares.
struct Compared {
  int output;
  std::string label;
  const LossReport::Head* loss;  // of the output; null: it has none
};

// As the metric says, else of the first loss with a label, else of the first output that answers a
// label beside the losses.
Compared ComparedBy(const MetricSpec& spec, const Symbol& symbol, const LossReport& losses,
                    const std::map<int, std::string>& beside) {
  const auto first = [&losses](auto&& fits) {
    const auto found = std::ranges::find_if(losses.heads(), fits);
    return found == losses.heads().end() ? nullptr : &*found;
  };
  const auto of_output = [&first](int output) {
    return first([output](const LossReport::Head& head) { return head.output == output; });
  };
  const auto answered_by = [&beside](int output) {
    const auto found = beside.find(output);
    return found == beside.end() ? "" : found->second;
  };
  Compared compared;
  if (!spec.output.empty()) {
    compared.output = FindOutput(symbol, spec.output);
    compared.loss = of_output(compared.output);
    compared.label = answered_by(compared.output);
  } else if (const auto* labelled =
                 first([](const LossReport::Head& head) { return !head.label.empty(); })) {
    compared.output = labelled->output;
    compared.loss = labelled;
  } else if (!beside.empty()) {
    compared.output = beside.begin()->first;
    compared.loss = of_output(compared.output);
    compared.label = beside.begin()->second;
  } else {
    Throw(ErrorKind::kConfig,
          "metric {} needs an output and a label: the net has no loss with a label; end it with "
          "one (SoftmaxOutput, LinearRegressionOutput, ...), or give `output` and `label`",
          spec.name);
  }
  if (!spec.label.empty()) {
    compared.label = spec.label;
  } else if (compared.label.empty() && compared.loss) {
    compared.label = compared.loss->label;
  }
  if (compared.label.empty()) {
    Throw(ErrorKind::kConfig,
          "metric {} of output '{}' needs `label`: that output has none of its own", spec.name,
          spec.output);
  }
  return compared;
}

// Of the examples of a batch; null: it has none.
const TBlob* WeightsAmong(const std::map<std::string, TBlob>& labels) {
  const auto found = labels.find(kExampleWeight);
  return found == labels.end() ? nullptr : &found->second;
}

bool IgnoresBySpec(const MetricSpec& spec) {
  return std::ranges::any_of(spec.params,
                             [](const auto& param) { return param.first == "ignore_label"; });
}

}  // namespace

std::string HeadName(std::string output) {
  constexpr std::string_view kEnding = "_output";
  if (output.ends_with(kEnding)) output.resize(output.size() - kEnding.size());
  return output;
}

MetricSet::MetricSet(const Symbol& symbol, const LossReport& losses,
                     const std::vector<MetricSpec>& specs, const std::vector<DataDesc>& labels) {
  const std::map<int, std::string> beside = LabelsBesideLosses(symbol);
  for (const MetricSpec& spec : specs) {
    Item item;
    const Compared compared = ComparedBy(spec, symbol, losses, beside);
    item.metric = Metric::Create(spec.name, spec.params);
    if (item.metric->takes_losses() && !IgnoresBySpec(spec) && compared.loss &&
        compared.loss->ignores && compared.label == compared.loss->label) {
      // What the loss ignores does not count here either.
      Kwargs params = spec.params;
      params.emplace_back("ignore_label",
                          params::Print(static_cast<int64_t>(compared.loss->ignore_label)));
      item.metric = Metric::Create(spec.name, params);
    }
    item.output = compared.output;
    item.label = compared.label;
    if (compared.loss && item.label == compared.loss->label)
      RequireClassifier(*item.metric, *compared.loss);
    item.of_losses = compared.loss && compared.loss->kind == LossReport::Head::Kind::kRows;
    if (item.of_losses && !item.metric->takes_losses()) {
      Throw(ErrorKind::kConfig,
            "metric {} compares predictions, but '{}' outputs losses; use cross_entropy or "
            "perplexity",
            item.metric->name(), compared.loss->name);
    }
    for (const DataDesc& desc : labels) {
      if (desc.name == item.label) item.units = desc.units;
    }
    items_.push_back(std::move(item));
  }
  NameItems(symbol.ListOutputs());
}

void MetricSet::NameItems(const std::vector<std::string>& outputs) {
  for (Item& item : items_) {
    const auto same_kind = [&item](const Item& other) {
      return other.metric->name() == item.metric->name();
    };
    const bool alone = std::count_if(items_.begin(), items_.end(), same_kind) == 1;
    item.name = alone ? item.metric->name()
                      : format("{}_{}", HeadName(outputs[static_cast<size_t>(item.output)]),
                               item.metric->name());
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (items_[i].name != items_[j].name) continue;
      Throw(
          ErrorKind::kConfig,
          "metric {} of output '{}' appears twice; remove one of them, or give it another `output`",
          items_[i].metric->name(), HeadName(outputs[static_cast<size_t>(items_[i].output)]));
    }
  }
}

void MetricSet::Update(const std::vector<TBlob>& outputs,
                       const std::map<std::string, TBlob>& labels, int64_t count) {
  const TBlob* const weights = WeightsAmong(labels);
  for (Item& item : items_) {
    const auto label = labels.find(item.label);
    if (label == labels.end()) {
      std::vector<std::string> names;
      for (const auto& [name, blob] : labels) names.push_back(name);
      Throw(ErrorKind::kConfig, "metric {} needs label '{}', which the data do not provide{}",
            item.metric->name(), item.label, DidYouMean(item.label, names));
    }
    const TBlob& output = outputs[static_cast<size_t>(item.output)];
    if (item.of_losses) {
      item.metric->UpdateFromLosses(label->second, output, count, weights);
      continue;
    }
    if (!item.units) {
      item.metric->Update(label->second, output, count, weights);
      continue;
    }
    std::vector<float> truth = Restored(label->second, *item.units),
                       guess = Restored(output, *item.units);
    const auto on_host = [](std::vector<float>& values, const TShape& shape) {
      return TBlob{values.data(), shape, DType::kFloat32, {}, Context::cpu()};
    };
    item.metric->Update(on_host(truth, label->second.shape), on_host(guess, output.shape), count,
                        weights);
  }
}

void MetricSet::Reset() {
  for (Item& item : items_) item.metric->Reset();
}

NamedValues MetricSet::Values() const {
  NamedValues values;
  for (const Item& item : items_) values.emplace_back(item.name, item.metric->value());
  return values;
}

std::vector<std::string> MetricSet::Names() const {
  std::vector<std::string> names;
  for (const Item& item : items_) names.push_back(item.name);
  return names;
}

bool MetricSet::HigherIsBetter(const std::string& name) const {
  for (const Item& item : items_) {
    if (item.name == name) return item.metric->higher_is_better();
  }
  Throw(ErrorKind::kConfig, "'{}' is not one of the metrics of this run{}; they are {}", name,
        DidYouMean(name, Names()), join(Names(), ", "));
}

std::vector<std::string> MetricSet::SaveState() const {
  std::vector<std::string> states;
  for (const Item& item : items_) states.push_back(item.metric->SaveState());
  return states;
}

void MetricSet::CheckStates(const std::vector<std::string>& states) const {
  if (states.size() == items_.size()) return;
  Throw(ErrorKind::kData, "the saved state has {} metrics, the run has {}", states.size(),
        items_.size());
}

void MetricSet::RestoreState(const std::vector<std::string>& states) {
  CheckStates(states);
  for (size_t i = 0; i < items_.size(); ++i) items_[i].metric->RestoreState(states[i]);
}

void MetricSet::Merge(const std::vector<std::string>& states) {
  CheckStates(states);
  for (size_t i = 0; i < items_.size(); ++i) items_[i].metric->Merge(states[i]);
}

EpochScores::EpochScores(const Symbol& symbol, const std::vector<MetricSpec>& metrics,
                         const std::vector<DataDesc>& labels)
    : loss_(symbol), metrics_(symbol, loss_, metrics, labels) {}

void EpochScores::Add(const std::vector<TBlob>& outputs, const std::map<std::string, TBlob>& labels,
                      int64_t count) {
  outputs_.clear();
  output_room_.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs_.push_back(AsFloat32(outputs[i], &output_room_[i]));
  std::erase_if(labels_, [&](const auto& before) { return !labels.contains(before.first); });
  for (const auto& [name, label] : labels) labels_[name] = AsFloat32(label, &label_room_[name]);
  for (size_t h = 0; h < loss_.heads().size(); ++h) {
    const LossReport::Head& head = loss_.heads()[h];
    const auto label = labels_.find(head.label);
    if (head.label.empty() || label != labels_.end()) {
      loss_.Update(static_cast<int>(h), outputs_[static_cast<size_t>(head.output)],
                   head.label.empty() ? nullptr : &label->second, count, WeightsAmong(labels_));
    } else {
      loss_known_ = false;
    }
  }
  metrics_.Update(outputs_, labels_, count);
}

void EpochScores::Reset() {
  loss_.Reset();
  metrics_.Reset();
  loss_known_ = true;
}

NamedValues EpochScores::Values() const {
  NamedValues values;
  if (loss_known_ && loss_.has_values()) values.emplace_back("loss", loss_.Total());
  if (loss_known_ && loss_.heads().size() > 1) {
    for (size_t h = 0; h < loss_.heads().size(); ++h) {
      if (loss_.heads()[h].kind == LossReport::Head::Kind::kUnknown) continue;
      values.emplace_back(loss_.heads()[h].name + "_loss", loss_.Mean(static_cast<int>(h)));
    }
  }
  for (auto& value : metrics_.Values()) values.push_back(std::move(value));
  return values;
}

std::string EpochScores::SaveState() const {
  std::string text = format("{}\n{}\n", loss_known_ ? "known" : "unknown", loss_.SaveState());
  for (const std::string& state : metrics_.SaveState()) text += state + "\n";
  return text;
}

void EpochScores::RestoreState(const std::string& text) {
  Reset();
  Merge(text);
}

void EpochScores::Merge(const std::string& state) {
  std::vector<std::string> lines;
  std::istringstream stream(state);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.size() < 2 || (lines[0] != "known" && lines[0] != "unknown"))
    Throw(ErrorKind::kData, "'{}' is not a saved state of losses and metrics", state.substr(0, 80));
  loss_known_ = loss_known_ && lines[0] == "known";
  loss_.Merge(lines[1]);
  lines.erase(lines.begin(), lines.begin() + 2);
  metrics_.Merge(lines);
}

InputOrder::InputOrder(const Executor& executor, const DataIter& iter,
                       const std::vector<std::string>& not_data) {
  const std::vector<DataDesc> descs[] = {iter.provide_data(), iter.provide_label()};
  for (const std::string& name : executor.input_names()) {
    std::optional<Place> place;
    for (bool label : {false, true}) {
      for (size_t i = 0; i < descs[label].size(); ++i) {
        if (descs[label][i].name == name) place = {label, i};
      }
    }
    if (!place && std::ranges::count(not_data, name) == 0)
      Throw(ErrorKind::kConfig, "the data do not provide input '{}' of the net", name);
    places_.push_back(place);
  }
}

void InputOrder::Arrange(const DataBatch& batch, std::vector<NDArray>* inputs) const {
  inputs->clear();
  for (const std::optional<Place>& place : places_) {
    inputs->push_back(place ? (place->label ? batch.label : batch.data)[place->index] : NDArray());
  }
}

Evaluation::Evaluation(Runtime& runtime, const Symbol& symbol, DataIter& iter,
                       const std::vector<MetricSpec>& metrics, Executor* shared, Context ctx,
                       const ComputeModes& modes, const std::vector<std::string>& carry)
    : runtime_(runtime),
      iter_(iter),
      net_(WithCarriedStates(runtime.operators(), OnBatchesOf(iter, runtime.operators(), symbol),
                             carry)),
      sizes_(iter),
      scores_(symbol, metrics, iter.provide_label()) {
  executor_ = Executor::SimpleBind(
      runtime, net_.net, EvaluationRequest(net_.net, WithStates(ArraysOf(iter), net_), ctx, modes),
      shared);
  carried_ = std::make_unique<CarriedStates>(runtime, *executor_, net_);
  if (!net_.states.empty() && sizes_.count() > 1)
    Throw(ErrorKind::kConfig, "states go on (net.carry) between batches of one length alone");
  for (size_t size = 0; size < sizes_.largest(); ++size)
    smaller_.push_back(executor_->Reshape(sizes_.ShapesOf(size, *executor_)));
  // Labels that no output depends on need arrays all the same. Shared ones are parameters of the
  // layers that compute a label.
  const std::set<std::string> read = VariablesRead(symbol);
  for (const auto& [name, array] : executor_->args()) {
    if (read.contains(name)) continue;
    if (!shared || !shared->args().contains(name)) NDArray(array).Fill(0);
    missing_labels_.push_back(name);
  }
}

void Evaluation::Launch(const InputOrder& order, Flight* flight) {
  std::vector<NDArray> inputs;
  order.Arrange(flight->batch, &inputs);
  carried_->PutInto(&inputs);
  const size_t size = sizes_.Of(flight->batch);
  Executor& executor = size == sizes_.largest() ? *executor_ : *smaller_[size];
  executor.Forward(inputs);
  carried_->Update();
  const std::vector<NDArray>& outputs = executor.outputs();
  flight->outputs.resize(num_outputs());
  for (size_t i = 0; i < num_outputs(); ++i) {
    NDArray& copy = flight->outputs[i];
    const Context ctx = outputs[i].ctx();
    const Context host = ctx.type == DeviceType::kGPU ? Context::cpu_pinned(ctx.id) : ctx;
    if (copy.empty() || copy.shape() != outputs[i].shape())
      copy = NDArray(runtime_, outputs[i].shape(), outputs[i].dtype(), host, Layout(),
                     "evaluated " + outputs[i].who());
    copy.CopyFrom(outputs[i]);
  }
}

void Evaluation::TakeIn(const Flight& flight, const OnBatch& on_batch) {
  std::vector<TBlob> outputs;
  for (const NDArray& output : flight.outputs) {
    output.WaitToRead();
    outputs.push_back(output.data());
  }
  const std::vector<DataDesc> descs = iter_.provide_label();
  std::map<std::string, TBlob> labels;
  for (size_t i = 0; i < descs.size(); ++i) {
    flight.batch.label[i].WaitToRead();
    labels[descs[i].name] = flight.batch.label[i].data();
  }
  scores_.Add(outputs, labels, flight.batch.count);
  if (on_batch) on_batch(flight.batch, flight.outputs);
}

// While the results of a batch are added, the next one is computed.
NamedValues Evaluation::Run(const OnBatch& on_batch, const std::function<bool()>& stop,
                            const std::function<NamedValues(EpochScores*)>& values) {
  scores_.Reset();
  iter_.Reset(0);
  carried_->Zero();
  const InputOrder order(*executor_, iter_, net_.states);
  Flight* before = nullptr;
  for (Flight* flight = flights_; !(stop && stop()) && iter_.Next(&flight->batch);
       flight = flight == flights_ ? flights_ + 1 : flights_) {
    Launch(order, flight);
    if (before) TakeIn(*before, on_batch);
    before = flight;
  }
  if (before) TakeIn(*before, on_batch);
  for (Flight& flight : flights_) flight.batch = DataBatch();
  return values ? values(&scores_) : scores_.Values();
}

}  // namespace mxtrain
