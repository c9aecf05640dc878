// SPDX-License-Identifier: Apache-2.0
#include "app/inference/model_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>

#include "app/inference/open_model.h"
#include "app/inference/views.h"
#include "app/session/batch_fit.h"
#include "app/session/pipeline_spec.h"
#include "mxtrain/base/error.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::inference {
namespace {

int64_t BatchWithinMemory(Runtime& runtime, const Model& model, const RunOptions& options) {
  constexpr int64_t kMost = 64;  // larger batches are not faster
  const auto bytes_of = [&](int64_t batch) {
    return session::InferenceBytes(runtime, model.symbol, model.info.inputs, batch, options.device,
                                   options.modes);
  };
  const auto memory_of = [&](Context of) { return session::FreeBytes(runtime, of) / 4; };
  const session::BatchFit fit = session::PowerOfTwoWithin(memory_of, kMost, bytes_of);
  if (fit.limit)
    options.log.Write(LogLevel::kInfo, format("{} examples per batch, to fit the free memory of {}",
                                              fit.batch, fit.limit->ToString()));
  return fit.batch;
}

// Throws kUsage for an output whose part for an example changes with the size of the batch.
void CheckRows(const Model& model, int64_t least_batch, int64_t batch) {
  const std::vector<TShape> least = ShapesOf(model, least_batch).outputs,
                            whole = ShapesOf(model, batch).outputs;
  const std::vector<std::string> names = model.symbol.ListOutputs();
  for (size_t k = 0; k < names.size(); ++k) {
    if (least[k].ndim() == 0 || least[k][0] != least_batch) continue;  // RowOf refuses it
    if (least[k].Size() * batch == whole[k].Size() * least_batch) continue;
    Throw(ErrorKind::kUsage,
          "the output '{}' is {} for a batch of {} and {} for a batch of {}: an example has no "
          "part of it of its own",
          HeadName(names[k]), whole[k].ToString(), batch, least[k].ToString(), least_batch);
  }
}

bool IsMask(const std::map<std::string, Attrs>& attrs, const std::string& name,
            const std::vector<float>& values) {
  const auto own = attrs.find(name);
  return own != attrs.end() && FindMultipliers(name, own->second, {}).lr == 0 &&
         std::ranges::none_of(values, [](float value) { return std::isnan(value); });
}

// The examples of a source without its labels, whose form may not be that of the net's.
class UnlabelledSource final : public io::Source {
 public:
  explicit UnlabelledSource(std::shared_ptr<const io::Source> source)
      : source_(std::move(source)) {}
  int64_t size() const override { return source_->size(); }
  const std::vector<io::FieldSpec>& data_fields() const override { return source_->data_fields(); }
  const std::vector<io::FieldSpec>& label_fields() const override { return none_; }
  void Read(int64_t index, io::Sample* sample) const override {
    source_->Read(index, sample);
    sample->labels.clear();
  }
  std::span<const float> Rests(int64_t index, bool label, size_t position) const override {
    return source_->Rests(index, label, position);
  }
  std::string Name(int64_t index) const override { return source_->Name(index); }
  std::string FileOf(int64_t index) const override { return source_->FileOf(index); }
  std::string TextOf(int64_t index) const override { return source_->TextOf(index); }
  int64_t streams() const override { return source_->streams(); }
  std::optional<int> ClassOf(int64_t) const override { return std::nullopt; }
  const std::vector<std::string>& class_names() const override { return no_names_; }

 private:
  const std::shared_ptr<const io::Source> source_;
  const std::vector<io::FieldSpec> none_;
  const std::vector<std::string> no_names_;
};

}  // namespace

ModelRun::ModelRun(Runtime& runtime, const Model& model, std::shared_ptr<const io::Source> source,
                   const RunOptions& options)
    : source_(std::move(source)), read_(std::make_shared<UnlabelledSource>(source_)) {
  if (options.tiles) read_ = io::NewTiledSource(read_, *options.tiles);
  session::PipelineSpec spec = session::PipelineSpec::FromJson(model.info.pipeline).OfPrediction();
  ModelInfo info = model.info;
  if (options.views == "crops") WidenForCrops(&spec, &info);
  const int64_t wanted = options.batch > 0      ? options.batch
                         : read_->streams() > 0 ? read_->streams()
                                                : BatchWithinMemory(runtime, model, options);
  const int64_t batch = std::min(wanted, read_->size());
  // Views are created on the host.
  const Context batches_for = options.views.empty() ? options.device : Context::cpu();
  iter_ = session::NewModelIter(runtime, read_, spec, info, batch, batches_for);
  if (!options.views.empty()) {
    auto views = std::make_unique<ViewsIter>(runtime, std::move(iter_), model.info.inputs[0].shape,
                                             options.views == "crops");
    views_ = views->views();
    iter_ = std::move(views);
  }
  CheckRows(model, options.least_batch, iter_->batch_size());
  evaluation_.emplace(runtime, model.symbol, *iter_, std::vector<MetricSpec>{}, nullptr,
                      options.device, options.modes,
                      read_->streams() > 0 ? model.info.carry : std::vector<std::string>());
  SetParameters(model, &evaluation_->executor(), evaluation_->MissingLabels());
}

ModelRun::~ModelRun() = default;

void ModelRun::ForEach(const OnRow& on_row, const std::function<void(int64_t)>& on_batch,
                       const std::function<bool()>& stop) {
  std::vector<MeanOfViews> means(evaluation_->num_outputs(), MeanOfViews(views_));
  std::vector<std::vector<float>> values(means.size());
  std::vector<const float*> row(means.size());
  evaluation_->Run(
      [&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
        bool whole = true;
        for (size_t k = 0; k < outputs.size(); ++k) {
          values[k] = outputs[k].ToVector();
          whole = means[k].Add(&values[k]) && whole;
        }
        if (!whole) return;
        const auto rows = static_cast<size_t>(iter_->batch_size());
        const tasks::Examples examples(batch, *iter_, read_.get());
        for (size_t i = 0; i < static_cast<size_t>(batch.count); ++i) {
          for (size_t k = 0; k < row.size(); ++k)
            row[k] = values[k].data() + i * (values[k].size() / rows);
          on_row(examples[i], row);
        }
        on_batch(batch.count);
      },
      stop);
}

std::vector<std::pair<std::string, std::string>> ModelRun::Bad() const {
  auto bad = iter_->stats().bad;
  return read_->TileOf(0) ? OfImages(std::move(bad)) : bad;
}

bool CheckParameters(const Model& model, const Logger& log) {
  const auto attrs = model.symbol.ListAttrs();
  for (const auto* arrays : {&model.args, &model.auxs}) {
    for (const auto& [name, array] : *arrays) {
      const std::vector<float> values = array.ToVector();
      const auto bad =
          std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
      if (bad == values.end() || IsMask(attrs, name, values)) continue;
      log.Write(LogLevel::kWarning,
                format("{}: the parameter '{}' contains {}, so predictions are meaningless; "
                       "use a checkpoint from before the training diverged",
                       model.file, name, *bad));
      return false;
    }
  }
  return true;
}

}  // namespace mxtrain::inference
