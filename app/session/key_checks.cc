// SPDX-License-Identifier: Apache-2.0
#include "app/session/key_checks.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "app/config/net_shapes.h"
#include "app/config/relations.h"
#include "app/config/schema.h"
#include "app/session/head_tasks.h"
#include "app/session/source_params.h"
#include "app/session/train_options.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/glob.h"
#include "mxtrain/train/carry.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::session {
namespace {

// The label that label_delim makes a set of classes: the one of a list, the first of one column of
// a table; "" if there is none.
std::string LabelOfSets(const SessionView& session) {
  const config::SourceConfig& c = session.config().data.train;
  const config::Net& net = session.net;
  if (!IsTable(c)) return net.labels.size() == 1 ? net.labels[0].name : "";
  for (const config::Column& column : c.columns) {
    const bool input =
        std::any_of(net.inputs.begin(), net.inputs.end(),
                    [&](const config::NetInput& i) { return i.name == column.input; });
    if (!input && !IsWeight(column, net) && column.columns.size() == 1) return column.input;
  }
  return "";
}

const config::Place& PlaceOfInputs(const config::NetConfig& net) {
  const config::Place& place = net.input.place ? net.input.place : net.inputs.place;
  return place ? place : net.place;
}

}  // namespace

void CheckInputOrder(const SessionView& session) {
  constexpr int64_t kMostChannels = 4;
  const config::Net& net = session.net;
  const config::NetConfig& written = session.config().net;
  const config::SourceConfig& c = session.config().data.train;
  for (const config::NetInput& input : net.inputs) {
    const bool images =
        IsTable(c) ? std::any_of(c.columns.begin(), c.columns.end(),
                                 [&net](const auto& column) { return IsImage(column, net.inputs); })
                   : !c.source.empty();
    const TShape& s = input.shape;
    if (!images || s.ndim() != 3 || s[0] <= kMostChannels || s[2] > kMostChannels) continue;
    session.diagnostics.Error(
        PlaceOfInputs(written),
        format("the input '{}' is {}: {} channels of {}x{}; the order is channels, height, width",
               input.name, s.ToString(), s[0], s[2], s[1]),
        format("write [{}, {}, {}]", s[2], s[0], s[1]));
  }
  session.diagnostics.ThrowIfErrors();
}

void CheckNetShapes(const SessionView& session) {
  const config::Config& config = session.config();
  const int batch_size = std::max(config.data.batch_size, 1);  // 0: not chosen yet
  config::CheckNetShapes(session.net, batch_size, PlaceOfInputs(config.net), config.net.place,
                         &session.diagnostics);
}

void CheckCarry(const SessionView& session, const OperatorRegistry& operators) {
  const config::NetConfig& net = session.config().net;
  const config::Place place = session.loaded.PlaceOf("net.carry");
  try {
    WithCarriedStates(operators, session.net.symbol, net.carry);
  } catch (const Error& e) {
    session.diagnostics.Error(place, format("net.carry: {}", e.what()));
  }
  const config::TrainConfig& train = session.config().train;
  const char* what = net.carry.empty()                   ? nullptr
                     : train.kvstore.between_processes() ? "several processes (train.kvstore.type)"
                     : session.config().data.cache == "features" ? "data.cache: features"
                                                                 : nullptr;
  if (what)
    session.diagnostics.Error(place, format("net.carry does not go with {}", what),
                              "remove one of them");
}

// Reports layers that cannot have them.
static void AddLoraFactors(const SessionView& session, std::vector<std::string>* parameters) {
  try {
    for (const LoraFactors& names :
         LoraFactorsOf(session.net.symbol, LoraOf(session.config().train)))
      parameters->insert(parameters->end(), {names.a, names.b});
  } catch (const Error& e) {
    session.diagnostics.Error(session.loaded.PlaceOf("train.lora.layers"),
                              format("train.lora.layers: {}", e.what()));
  }
}

void CheckPatterns(const SessionView& session) {
  const config::Net& net = session.net;
  const config::TrainConfig& train = session.config().train;
  std::vector<std::string> parameters = config::ParametersOf(net);
  AddLoraFactors(session, &parameters);
  const auto check = [&](const std::string& key, const std::string& pattern) {
    try {
      RequireMatch(pattern, parameters, "parameter");
    } catch (const Error& e) {
      session.diagnostics.Error(session.loaded.PlaceOf("train." + key),
                                format("train.{}: {}", key, e.what()));
    }
  };
  for (const auto& [pattern, factor] : train.lr_mult) check("lr_mult", pattern);
  for (const std::string& pattern : train.freeze.layers) check("freeze.layers", pattern);
  for (const std::string& pattern : train.freeze.except) check("freeze.except", pattern);
  for (const std::string& pattern : train.lora.whole) check("lora.whole", pattern);
  for (const auto& [pattern, init] : train.initializers) check("initializers", pattern);
  if (train.freeze.epochs == 0 && train.freeze.warmup != config::FreezeConfig().warmup) {
    session.diagnostics.Error(
        session.loaded.PlaceOf("train.freeze.warmup"),
        "train.freeze.warmup is for layers that are frozen for some epochs, and none are",
        "set train.freeze.epochs, or remove train.freeze.warmup");
  }
  const bool freezes =
      !train.freeze.layers.empty() || !train.freeze.except.empty() || !train.lora.layers.empty();
  const char* without = freezes                     ? nullptr
                        : train.freeze.global_stats ? "global_stats"
                        : train.freeze.epochs > 0   ? "epochs"
                                                    : nullptr;
  if (!without) return;
  session.diagnostics.Error(
      session.loaded.PlaceOf(format("train.freeze.{}", without)),
      format("train.freeze.{} is for layers that are frozen, and none are", without),
      format(
          "name them with train.freeze.layers, or all others with train.freeze.except; or remove "
          "train.freeze.{}",
          without));
}

// What dist_device_sync does not have.
void CheckBetweenGpus(const SessionView& session) {
  const config::KVStoreConfig& kvstore = session.config().train.kvstore;
  if (kvstore.type != "dist_device_sync") return;
  const std::tuple<bool, const char*, const char*> refused[] = {
      {kvstore.compression.type == "2bit", "compression.type", "GPUs send what they have"},
      {kvstore.shard_states, "shard_states", "every GPU updates all weights"},
      {kvstore.sync_batch_norm, "sync_batch_norm", "its sums travel through host memory"},
      {kvstore.workers > 1, "workers", "each GPU computes its own part of a batch"},
  };
  for (const auto& [given, key, why] : refused) {
    if (!given) continue;
    session.diagnostics.Error(
        session.loaded.PlaceOf(format("train.kvstore.{}", key)),
        format("train.kvstore.{} does not go with train.kvstore.type: dist_device_sync: {}", key,
               why),
        "remove it, or use dist_sync on CPUs");
  }
}

// Of dist_async, and what is for it alone.
void CheckApart(const SessionView& session) {
  const config::TrainConfig& train = session.config().train;
  const config::KVStoreConfig& kvstore = train.kvstore;
  const auto reject = [&](const std::string& key, const std::string& text,
                          const std::string& advice) {
    session.diagnostics.Error(session.loaded.PlaceOf("train." + key), text, advice);
  };
  if (kvstore.type != "dist_async") {
    if (kvstore.staleness > 0)
      reject("kvstore.staleness",
             format("train.kvstore.staleness is for dist_async, and train.kvstore.type is {}",
                    kvstore.type),
             "remove it, or set train.kvstore.type to dist_async");
    return;
  }
  const std::string one_by_one = "each process's gradients update the parameters by themselves";
  const std::tuple<bool, const char*, std::string> refused[] = {
      {kvstore.wire != "float32", "kvstore.wire", "gradients travel as they are"},
      {kvstore.compression.type == "2bit", "kvstore.compression.type",
       "gradients travel as they are"},
      {kvstore.shard_states, "kvstore.shard_states",
       "each process has the optimizer's states of a part of the parameters anyway"},
      {kvstore.scale_lr, "kvstore.scale_lr", "an update is of one process's part of the batch"},
      {kvstore.sync_batch_norm, "kvstore.sync_batch_norm",
       "processes do not compute the same step at the same time"},
      {train.clip.norm.has_value(), "clip.norm", one_by_one},
      {train.amp == "fp16", "amp", "the scale of the loss is one for all processes; use bf16"},
      {train.ema.decay.has_value(), "ema.decay", "each process sees other values"},
      {train.freeze.epochs > 0, "freeze.epochs", "layers are frozen for the whole run, or not"},
  };
  for (const auto& [given, key, why] : refused) {
    if (given)
      reject(key, format("train.{} does not go with train.kvstore.type: dist_async: {}", key, why),
             "remove it, or use dist_sync");
  }
}

void CheckKVStore(const SessionView& session) {
  const config::KVStoreConfig& kvstore = session.config().train.kvstore;
  const auto only_between_processes = [&](const std::string& key, bool given) {
    if (!given || kvstore.between_processes()) return;
    // Whether `auto` finds several GPUs is known when training begins.
    const bool between_gpus = kvstore.type == "device" || kvstore.type == "auto";
    if (key == "wire" && between_gpus) return;
    const std::string leaf = key == "compression" ? "compression.type" : key;
    session.diagnostics.Error(
        session.loaded.PlaceOf("train.kvstore." + leaf),
        format(
            "train.kvstore.{} is for gradients between processes{}, and train.kvstore.type is {}",
            key, key == "wire" ? " or GPUs" : "", kvstore.type),
        format("set train.kvstore.type to dist_sync, or remove train.kvstore.{}", key));
  };
  const bool compresses = kvstore.compression.type == "2bit";
  only_between_processes("wire", kvstore.wire != "float32");
  only_between_processes("compression", compresses);
  only_between_processes("shard_states", kvstore.shard_states);
  CheckBetweenGpus(session);
  CheckApart(session);
  const auto no_compression_with = [&](const std::string& key, const std::string& why) {
    session.diagnostics.Error(session.loaded.PlaceOf(key),
                              format("train.kvstore.compression does not go with {}: {}", key, why),
                              "remove one of them");
  };
  if (compresses && kvstore.wire != "float32")
    no_compression_with("train.kvstore.wire", "a compressed gradient has 2 bits");
  if (compresses && session.config().train.amp == "fp16") {
    no_compression_with("train.amp",
                        "in fp16 gradients are scaled by a factor that changes, and the threshold "
                        "is not");
  }
}

void WarnOfUntrained(const SessionView& session) {
  constexpr size_t kMostNamed = 5;
  const config::Net& net = session.net;
  if (LossReport(net.symbol).heads().empty()) return;
  const std::set<std::string> trained = VariablesTrained(net.symbol);
  const LrPatterns patterns = LrPatternsOf(session.config().train, net);
  const Graph& graph = net.symbol.graph();
  const auto is_untrained = [&](const NodeEntry& e) {
    const Node& variable = graph.nodes[static_cast<size_t>(e.node)];
    const auto has_name = [&](const config::NetInput& i) { return i.name == variable.name; };
    return variable.kind == Node::Kind::kVariable && !trained.contains(variable.name) &&
           std::none_of(net.inputs.begin(), net.inputs.end(), has_name) &&
           std::none_of(net.labels.begin(), net.labels.end(), has_name) &&
           FindMultipliers(variable.name, variable.attrs, patterns).lr != 0;
  };
  std::vector<std::string> layers;
  for (const Node& node : graph.nodes) {
    if (std::any_of(node.inputs.begin(), node.inputs.end(), is_untrained))
      layers.push_back(format("'{}'", node.name));
  }
  if (layers.empty()) return;
  const auto first = net.origins.find(std::string_view(layers[0]).substr(1, layers[0].size() - 2));
  session.diagnostics.Warning(
      first == net.origins.end() ? session.config().net.place : first->second.place,
      format("no gradient of a loss reaches the parameters of {}, so they are not trained",
             FirstOf(layers, kMostNamed)),
      "if that is meant, freeze them with attrs: {lr_mult: 0}; else find the operator without a "
      "gradient between them and the loss, such as BlockGrad");
}

void WarnOfUnreported(const SessionView& session) {
  const config::Net& net = session.net;
  const LossReport losses(net.symbol);
  for (const LossReport::Head& head : losses.heads()) {
    if (head.kind != LossReport::Head::Kind::kUnknown) continue;
    const auto origin = net.origins.find(head.name);
    session.diagnostics.Warning(
        origin == net.origins.end() ? session.config().net.place : origin->second.place,
        format("the loss of '{}' is not reported: the net computes its label", head.name),
        "to see a loss, end the net with one more output, MakeLoss of its value");
  }
}

void CheckLabelSets(const SessionView& session) {
  if (session.config().data.train.Param("label_delim").empty()) return;
  const std::string label = LabelOfSets(session);
  const config::Place place = session.loaded.PlaceOf("data.train.label_delim");
  for (const auto& task : TasksOf(session)) {
    if (task->head().label != label) continue;
    if (const auto refused = task->RefuseSets())
      session.diagnostics.Error(place, refused->text, refused->help);
  }
}

void ChooseMetrics(const SessionView& session, config::LoadedConfig* loaded) {
  if (loaded->config.train.metrics) return;
  std::vector<config::Named> chosen;
  const auto tasks = TasksOf(session);
  if (!tasks.empty()) {
    const tasks::Head& head = tasks.front()->head();
    const MetricSpec metric = tasks.front()->DefaultMetric();
    config::Named& named = chosen.emplace_back(config::Named{metric.name, metric.params, {}});
    // Without a name, the first loss that has a label.
    const LossReport losses(session.net.symbol);
    const auto first = std::ranges::find_if(
        losses.heads(), [](const LossReport::Head& loss) { return !loss.label.empty(); });
    if (first == losses.heads().end() || first->output != head.output)
      named.params.emplace_back("output", head.name);
    if (!head.has_loss_of_label()) named.params.emplace_back("label", head.label);
  }
  loaded->resolved.Find("train")->value.members.push_back({"metrics", {}, config::Write(chosen)});
  loaded->config.train.metrics = std::move(chosen);
  config::CheckMetrics(*loaded, &session.diagnostics);
}

}  // namespace mxtrain::session
