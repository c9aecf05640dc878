// SPDX-License-Identifier: Apache-2.0
#include "app/session/data_iters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/session/class_checks.h"
#include "app/session/shape_check.h"
#include "app/session/source_params.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/train/loss_report.h"
#include "mxtrain/train/packed_tokens.h"

namespace mxtrain::session {
namespace {

std::vector<io::TransformSpec> ToTransforms(const std::vector<config::Named>& named) {
  std::vector<io::TransformSpec> specs;
  for (const config::Named& n : named) specs.push_back({n.name, n.params});
  return specs;
}

}  // namespace

int64_t DataIters::EpochOfEnd(int64_t off_epochs) const {
  return first_epoch_ + std::max<int64_t>(config().train.epochs - off_epochs, 0);
}

std::unique_ptr<DataIter> DataIters::Training() {
  if (!sets_.Open(false)) {
    session_.diagnostics.Error({}, "there is no data.train to train on",
                               "add data: {train: {source: ..., path: ...}}");
    session_.diagnostics.ThrowIfErrors();
  }
  CheckClassCount(sets_.class_names(), session_);
  return Make(false, Pass::kTraining);
}

std::unique_ptr<DataIter> DataIters::Validation() {
  sets_.Open(false);  // its classes are also those of validation
  return sets_.Open(true) ? Make(true, Pass::kEvaluation) : nullptr;
}

std::unique_ptr<DataIter> DataIters::Whole(bool validation) {
  sets_.Open(validation);
  return Make(validation, Pass::kWhole);
}

std::unique_ptr<DataIter> DataIters::Make(bool validation, Pass pass,
                                          std::shared_ptr<const io::Source> examples) {
  const config::SourceConfig& c = ConfigOf(validation);
  std::shared_ptr<const io::Source> source = examples ? std::move(examples) : Examples(validation);
  io::PipelineParam p;
  p.Init(ParamsOf(*source, c, pass), "data");
  if (pass == Pass::kTraining) {
    CheckBatch(*source, c);
    if (source->ignores_labels()) RequireIgnoredLabels(session_.net.symbol);
  }
  p.Feed(ctx_);
  Measure(validation);
  std::unique_ptr<DataIter> iter;
  try {
    iter = MakeIter(std::move(source), p, validation, pass);
  } catch (const config::DiagnosticError&) {
    throw;  // says where
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    const config::Place place = c.transforms.empty() ? c.place : c.transforms.back().place;
    Throw(ErrorKind::kConfig, "{}: {}", session_.diagnostics.sources().Where(place), e.what());
  }
  CheckShapes(*iter, c, pass == Pass::kTraining, session_);
  CheckTargets(*iter, c, session_);
  CheckMetrics(*iter, session_);
  return iter;
}

std::optional<io::TileOptions> DataIters::Tiles() const {
  const config::TilesConfig& tiles = config().data.tiles;
  if (tiles.size == 0) return std::nullopt;
  try {
    return io::TilesOf(tiles.size, tiles.overlap);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session_.diagnostics.Error(session_.loaded.PlaceOf("data.tiles.overlap"), e.what());
    session_.diagnostics.ThrowIfErrors();
    throw;
  }
}

// The records, or the tiles of their images.
std::shared_ptr<const io::Source> DataIters::Examples(bool validation) {
  const std::optional<io::TileOptions> tiles = Tiles();
  if (!tiles) return sets_.opened(validation);
  std::shared_ptr<const io::Source>& tiled = tiled_[validation];
  if (tiled) return tiled;
  try {
    tiled = io::NewTiledSource(sets_.opened(validation), *tiles);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    session_.diagnostics.Error(session_.loaded.PlaceOf("data.tiles.size"),
                               format("data.tiles: {}", e.what()));
    session_.diagnostics.ThrowIfErrors();
  }
  session_.log.Write(LogLevel::kInfo,
                     format("{} {}: {} of {}", Counted(sets_.opened(validation)->size(), "image"),
                            validation ? "of validation" : "of training",
                            Counted(tiled->size(), "tile"), format("{0}x{0} pixels", tiles->side)));
  return tiled;
}

std::unique_ptr<DataIter> DataIters::Over(bool validation,
                                          std::shared_ptr<const io::Source> features) {
  const Pass pass = validation ? Pass::kEvaluation : Pass::kTraining;
  Kwargs kwargs = ParamsOf(*sets_.opened(validation), ConfigOf(validation), pass);
  std::erase_if(kwargs, [](const auto& param) { return param.first == "data_name"; });
  io::PipelineParam p;
  p.Init(kwargs, "data");
  p.Feed(ctx_);
  return io::NewPipeline(runtime_, std::move(features), {}, p);
}

std::string DataIters::Preparation(bool validation) const {
  // How fast, which order, and what is done with a record that cannot be read.
  const std::set<std::string> of_the_run = {"seed",  "workers",     "prefetch",
                                            "cache", "cache_bytes", "max_bad"};
  Json params = Json::object(), transforms = Json::array();
  for (const auto& [name, value] :
       ParamsOf(*sets_.opened(validation), ConfigOf(validation), Pass::kOnce)) {
    if (!of_the_run.contains(name)) params[name] = value;
  }
  const std::vector<io::TransformSpec> chain = Transforms(validation);
  for (const io::TransformSpec& transform : chain) {
    Json of = Json::object();
    for (const auto& [name, value] : transform.kwargs) of[name] = value;
    transforms.push_back({transform.name, of});
  }
  const bool draws = !std::ranges::all_of(chain, io::StaysInEvaluation);
  return Json{{"pipeline", params},
              {"transforms", transforms},
              {"seed", draws ? Json(config().seed) : Json()}}
      .dump();
}

void DataIters::RequireSameEpochs() const {
  const auto refuse = [this](const config::Place& place, const std::string& what) {
    session_.diagnostics.Error(
        place,
        format("data.cache: features needs images that are the same in every epoch, and {}", what),
        "give data.train the transforms of validation, such as center_crop and resize, or remove "
        "data.cache");
    session_.diagnostics.ThrowIfErrors();
  };
  if (config().train.mosaic.probability > 0)
    refuse(session_.loaded.PlaceOf("train.mosaic.probability"), "train.mosaic joins parts of them");
  if (!config().train.multi_scale.scale.empty()) {
    refuse(session_.loaded.PlaceOf("train.multi_scale.scale"),
           "train.multi_scale changes their size");
  }
  if (Tiles()) refuse(session_.loaded.PlaceOf("data.tiles.size"), "data.tiles reads parts of them");
  for (const auto& [key, mix] : {std::pair{"train.mixup", &config().train.mixup},
                                 std::pair{"train.cutmix", &config().train.cutmix}}) {
    if (mix->alpha > 0)
      refuse(session_.loaded.PlaceOf(format("{}.alpha", key)), format("{} mixes them", key));
  }
  const std::vector<config::Named>& named = config().data.train.transforms;
  for (const config::Named& transform : named) {
    if (transform.name == "normalize") continue;
    const io::Augmenter alone(std::vector<io::TransformSpec>{{transform.name, transform.params}},
                              3);
    if (alone.fixed() < alone.size())
      refuse(transform.place, format("'{}' is random", transform.name));
  }
}

// Of io::PipelineParam.
Kwargs DataIters::ParamsOf(const io::Source& source, const config::SourceConfig& c,
                           Pass pass) const {
  const config::DataConfig& data = config().data;
  const config::Net& net = session_.net;
  const bool whole = pass == Pass::kWhole, in_order = whole || pass == Pass::kOnce;
  Kwargs kwargs{{"batch_size", params::Print(in_order ? data.batch_size : BatchOfRank())},
                {"mode", pass == Pass::kTraining ? "training" : "evaluation"},
                {"shuffle", params::Print(c.shuffle && !in_order)},
                {"seed", std::to_string(config().seed)},
                {"max_bad", params::Print(data.max_bad)}};
  const int workers = data.workers == 0 && whole ? std::min(UsableCpuCount(), 256) : data.workers;
  if (!in_order) {
    kwargs.emplace_back("part_index", params::Print(rank_));
    kwargs.emplace_back("num_parts", params::Print(ranks_));
  }
  if (workers > 0) kwargs.emplace_back("workers", params::Print(workers));
  if (data.prefetch > 0) kwargs.emplace_back("prefetch", params::Print(data.prefetch));
  // An image source has one data and one label field; the net's names are given to them.
  if (source.data_fields().size() == 1 && net.inputs.size() == 1)
    kwargs.emplace_back("data_name", net.inputs[0].name);
  if (io::HasOneLabel(source) && net.labels.size() == 1)
    kwargs.emplace_back("label_name", net.labels[0].name);
  if (const std::optional<int64_t> channels = ImageChannels(source, net.inputs))
    kwargs.emplace_back("channels", params::Print(*channels));
  kwargs.emplace_back("exact_decode", params::Print(data.exact_decode || whole));
  kwargs.emplace_back("bits", params::Print(data.bits));
  kwargs.emplace_back("cache", in_order || data.cache == "features" ? "none" : data.cache);
  kwargs.emplace_back("cache_bytes", params::Print(data.cache_bytes.bytes));
  if (pass == Pass::kTraining) {
    kwargs.emplace_back("balanced", params::Print(c.balanced));
    AddMixing(&kwargs);
    AddMosaic(&kwargs);
  }
  return kwargs;
}

void DataIters::AddMosaic(Kwargs* pipeline) const {
  constexpr int64_t kParts = 4;
  const config::TrainConfig& train = config().train;
  if (train.mosaic.probability == 0) return;
  pipeline->emplace_back("mosaic", params::Print(train.mosaic.probability));
  if (train.mosaic.off_epochs > 0)
    pipeline->emplace_back("mosaic_epochs", params::Print(EpochOfEnd(train.mosaic.off_epochs)));
  if (train.mosaic.off_epochs >= train.epochs) {
    session_.log.Write(LogLevel::kWarning,
                       format("train.mosaic is off in the last {}, and the run has {}: nothing is "
                              "joined; lower train.mosaic.off_epochs",
                              Counted(train.mosaic.off_epochs, "epoch"), train.epochs));
    return;
  }
  if (BatchOfRank() >= kParts) return;
  session_.log.Write(
      LogLevel::kWarning,
      format("train.mosaic joins parts of {} examples of a batch, and {} has {}, so nothing is "
             "joined; give it {} or more (data.batch_size), or remove the key",
             kParts, ranks_ > 1 ? "the batch of each process" : "a batch", BatchOfRank(), kParts));
}

// Labels of mixed examples are distributions, which the loss uses unchanged; the pipeline does the
// label smoothing. Boxes stay boxes.
void DataIters::AddMixing(Kwargs* pipeline) const {
  const config::TrainConfig& train = config().train;
  if (train.mixup.alpha == 0 && train.cutmix.alpha == 0) return;
  const auto& fields = sets_.opened(false)->label_fields();
  const bool boxes = std::ranges::any_of(
      fields, [](const io::FieldSpec& label) { return label.kind == io::FieldKind::kBoxes; });
  if (boxes && train.cutmix.alpha > 0) {
    session_.diagnostics.Error(session_.loaded.PlaceOf("train.cutmix.alpha"),
                               "train.cutmix mixes classes, and the labels are boxes",
                               "remove it; train.mixup and train.mosaic take boxes");
    session_.diagnostics.ThrowIfErrors();
  }
  if (!boxes) AddSoftLabels(pipeline);
  const auto add = [&](const std::string& name, const config::MixConfig& mix) {
    pipeline->emplace_back(name, params::Print(mix.alpha));
    if (mix.off_epochs > 0)
      pipeline->emplace_back(name + "_epochs", params::Print(EpochOfEnd(mix.off_epochs)));
  };
  add("mixup", train.mixup);
  add("cutmix", train.cutmix);
  if (BatchOfRank() > 1) return;
  session_.log.Write(
      LogLevel::kWarning,
      format("train.{} mixes the examples of a batch, and {} has one, so nothing is mixed; give it "
             "two or more (data.batch_size), or remove the key",
             train.mixup.alpha > 0 ? "mixup" : "cutmix",
             ranks_ > 1 ? "the batch of each process" : "a batch"));
}

void DataIters::AddSoftLabels(Kwargs* pipeline) const {
  const config::TrainConfig& train = config().train;
  SoftLabelSpec labels;
  try {
    labels = FindSoftLabels(session_.net.symbol,
                            config::BatchShapes(session_.net, config().data.batch_size));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kConfig) throw;
    const std::string key = train.mixup.alpha > 0 ? "train.mixup" : "train.cutmix";
    session_.diagnostics.Error(session_.loaded.PlaceOf(key + ".alpha"),
                               format("{}: {}", key, e.what()));
    session_.diagnostics.ThrowIfErrors();
  }
  pipeline->emplace_back("soft_labels", params::Print(labels.classes));
  pipeline->emplace_back("label_smoothing", params::Print(labels.smoothing));
}

int64_t DataIters::GlobalBatch() const {
  const int64_t batch = config().data.batch_size;
  return config().train.kvstore.batch == "per_rank" ? batch * ranks_ : batch;
}

// Training uses only full batches.
void DataIters::CheckBatch(const io::Source& source, const config::SourceConfig& c) const {
  const int64_t batch = GlobalBatch(), workers = config().train.kvstore.workers * ranks_;
  if (batch % workers != 0) {
    session_.diagnostics.Error(
        session_.loaded.PlaceOf(ranks_ > 1 ? "train.kvstore.type" : "train.kvstore.workers"),
        format("a batch of {} cannot be divided among {} workers{}", batch, workers,
               ranks_ > 1 ? format(" ({} processes)", ranks_) : ""),
        format("data.batch_size: {} can", (batch / workers + 1) * workers));
    session_.diagnostics.ThrowIfErrors();
  }
  if (batch <= source.size()) return;
  const config::Place place = session_.loaded.PlaceOf("data.batch_size");
  session_.diagnostics.Error(
      place ? place : c.place,
      format("{} = {} exceeds the number of examples, {}",
             ranks_ > 1 ? "the batch of all processes" : "data.batch_size", batch, source.size()),
      "use a smaller batch");
  session_.diagnostics.ThrowIfErrors();
}

// `normalize: auto` is computed once on the training set, also for validation.
void DataIters::Measure(bool validation) {
  if (statistics_ || !io::WantsStatistics(ChainOf(validation))) return;
  const std::shared_ptr<const io::Source> training = sets_.Open(false);
  if (!training) {
    Throw(
        ErrorKind::kConfig,
        "normalize: auto takes mean and standard deviation from the training images, but there is "
        "no data.train; give mean and std as numbers");
  }
  const int64_t channels = ImageChannels(*training, session_.net.inputs).value_or(3);
  statistics_ =
      io::MeasurePixels(*training, static_cast<int>(channels), session_.config().data.bits);
  const auto short_list = [](const std::vector<double>& values) {
    std::string text;
    for (double value : values) text += format("{}{:.4f}", text.empty() ? "" : ", ", value);
    return text;
  };
  session_.log.Write(LogLevel::kInfo, format("normalize: auto: mean [{}], std [{}], from {} images",
                                             short_list(statistics_->mean),
                                             short_list(statistics_->std), statistics_->images));
}

// Validation data uses the training set's resizing and cropping unless it has its own transforms.
std::vector<io::TransformSpec> DataIters::ChainOf(bool validation) const {
  const config::SourceConfig& c = ConfigOf(validation);
  const bool inherits = validation && c.transforms.empty();
  return inherits ? io::EvaluationTransforms(ToTransforms(config().data.train.transforms))
                  : ToTransforms(c.transforms);
}

std::vector<io::TransformSpec> DataIters::Transforms(bool validation) const {
  return statistics_ ? io::WithStatistics(ChainOf(validation), *statistics_) : ChainOf(validation);
}

}  // namespace mxtrain::session
