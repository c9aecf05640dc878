// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/pipeline.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/thread.h"
#include "mxtrain/device/cpu/available_memory.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/io/internal/batch_mixer.h"
#include "mxtrain/io/internal/batch_mosaic.h"
#include "mxtrain/io/internal/batch_ring.h"
#include "mxtrain/io/internal/epoch_order.h"
#include "mxtrain/io/internal/field_kinds.h"

namespace mxtrain::io {
namespace {

int WorkerCount(int asked) {
  if (asked > 0) return asked;
  return std::clamp(UsableCpuCount() / 2, 1, 16);
}

int64_t CacheBytes(const PipelineParam& param) {
  if (param.cache == PipelineParam::kNone) return 0;
  return param.cache_bytes > 0 ? param.cache_bytes : std::max<int64_t>(1, AvailableMemory() / 2);
}

bool Mixes(const PipelineParam& param) {
  return param.mixup > 0 || param.cutmix > 0;
}

BatchMixer MixerOf(const PipelineParam& param) {
  return {{param.mixup, param.mixup_epochs},
          {param.cutmix, param.cutmix_epochs},
          static_cast<uint64_t>(param.seed)};
}

bool MixesBoxes(const PipelineParam& param, const Source& source) {
  return Mixes(param) && std::ranges::any_of(source.label_fields(), [](const FieldSpec& label) {
           return label.kind == FieldKind::kBoxes;
         });
}

// How many examples the objects of one in a batch may be of.
int ExamplesOfObjects(const PipelineParam& param, const Source& source) {
  return (param.mosaic > 0 ? BatchMosaic::kParts : 1) * (MixesBoxes(param, source) ? 2 : 1);
}

void CheckParam(const PipelineParam& param, const Source& source) {
  if (param.part_index >= param.num_parts) {
    Throw(ErrorKind::kConfig, "part_index = {} must be less than num_parts = {}", param.part_index,
          param.num_parts);
  }
  if (param.channels == 2)
    Throw(ErrorKind::kConfig, "channels = 2: expected 1 (gray), 3 (RGB) or 0 (as the source)");
  MixerOf(param).Check(source);
  const bool mixes_classes = Mixes(param) && !MixesBoxes(param, source);
  if ((mixes_classes || param.label_smoothing > 0) && param.soft_labels == 0) {
    Throw(
        ErrorKind::kConfig,
        "mixup, cutmix and label_smoothing work on labels that are distributions: set soft_labels");
  }
  if ((Mixes(param) || param.mosaic > 0) && param.mode != PipelineParam::kTraining)
    Throw(ErrorKind::kConfig, "mixup, cutmix and mosaic are for training");
  if (param.mosaic > 0) BatchMosaic::Check(source);
  if (param.balanced && (source.class_names().empty() || !param.shuffle)) {
    Throw(ErrorKind::kConfig, "balanced: {}",
          param.shuffle ? "the data have no classes" : "set shuffle too");
  }
  if (const int64_t streams = source.streams(); streams > 0) {
    if (param.shuffle) Throw(ErrorKind::kConfig, "shuffle: streams are read in their order");
    if (streams != param.batch_size * param.num_parts) {
      Throw(ErrorKind::kConfig, "data of {} need a row of the batch for each, got batches of {}",
            Counted(streams, "stream"), param.batch_size * param.num_parts);
    }
  }
  if (source.size() == 0) Throw(ErrorKind::kData, "the data source holds no examples");
}

// `name`: of the first field, if it is alone.
std::vector<DataDesc> Describe(const std::vector<FieldSpec>& fields,
                               const std::vector<TShape>& shapes, int64_t batch_size,
                               const std::string& name, bool alone) {
  std::vector<DataDesc> descs;
  for (size_t i = 0; i < fields.size(); ++i) {
    std::vector<int64_t> dims = {batch_size};
    dims.insert(dims.end(), shapes[i].begin(), shapes[i].end());
    descs.push_back({i == 0 && alone && !name.empty() ? name : fields[i].name, TShape(dims)});
    descs.back().units = fields[i].units;
  }
  return descs;
}

std::vector<int> ClassesOf(const Source& source) {
  std::vector<int> classes;
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::optional<int> known = source.ClassOf(i);
    if (!known) Throw(ErrorKind::kConfig, "balanced: {} has no class", source.Name(i));
    classes.push_back(*known);
  }
  return classes;
}

// A batch of a smaller size lies at the beginning of a slot's array.
NDArray BeginningOf(const NDArray& array, const TShape& shape) {
  if (array.shape() == shape) return array;
  return array.Reshape({array.shape().Size()}).Slice(0, shape.Size()).Reshape(shape);
}

using RowReports = std::vector<std::pair<int64_t, BadExample>>;

// The engine function that writes a slot: opens it when called, reports it if destroyed without a
// call.
class Ticket {
 public:
  Ticket(std::shared_ptr<BatchRing> ring, Slot* slot) : ring_(std::move(ring)), slot_(slot) {}
  Ticket(Ticket&&) noexcept = default;
  ~Ticket() {
    if (ring_) ring_->Skip(slot_);
  }
  void operator()(RunContext, engine::Callback finished) {
    const std::shared_ptr<BatchRing> ring = std::move(ring_);
    ring->Open(slot_, std::move(finished));
  }

 private:
  std::shared_ptr<BatchRing> ring_;
  Slot* slot_;
};

class Pipeline final : public DataIter {
 public:
  Pipeline(Runtime& runtime, const std::shared_ptr<const Source>& source, MultiScale scales,
           const PipelineParam& param);
  ~Pipeline() override;

  std::vector<DataDesc> provide_data() const override { return sizes_.back().data; }
  std::vector<DataDesc> provide_label() const override { return sizes_.back().label; }
  std::vector<BatchArrays> sizes() const override { return sizes_; }
  int64_t batch_size() const override { return param_.batch_size; }
  int64_t examples() const override { return source().size(); }
  int64_t batches_per_epoch() const override { return batches_; }
  std::string ExampleName(int64_t index) const override { return source().Name(index); }
  void Reset(int64_t epoch, int64_t first_batch) override;
  bool Next(DataBatch* batch) override;
  Stats stats() const override;

 private:
  bool training() const { return param_.mode == PipelineParam::kTraining; }
  const ExampleLoader& largest() const { return *loaders_.back(); }
  const Source& source() const { return largest().source(); }
  // Of sizes_ and loaders_.
  size_t DrawnSize(int64_t epoch, int64_t batch) const {
    return scales_.Draw(static_cast<uint64_t>(param_.seed), epoch, batch);
  }
  void AddSize(const std::shared_ptr<const Source>& source,
               const std::vector<TransformSpec>& transforms);
  int64_t CountBatches() const;
  void AddSlot();
  void Push(Slot* slot);
  void ThrowErrorOf(const Slot& slot) const;
  bool Advance(DataBatch* batch);
  void Deliver(Slot* slot, DataBatch* batch);
  void CheckBad() const;
  void ReportFullCache();

  void Work(int worker);
  void LoadRow(const Claim& claim, const ExampleLoader& loader, int64_t row, LoaderScratch* scratch,
               RowReports* bad) const;
  void Seal(const EpochPlan& plan, Slot* slot) const;

  // Constant after construction.
  Runtime& runtime_;
  const PipelineParam param_;
  const MultiScale scales_;
  std::vector<std::unique_ptr<const ExampleLoader>> loaders_;  // of each size
  std::vector<BatchArrays> sizes_;                             // rising
  const BatchMosaic mosaic_;
  const BatchMixer mixer_;
  std::vector<int> classes_;  // of each example; empty unless they are balanced
  int64_t batches_ = 0, allowed_bad_ = 0;
  std::shared_ptr<BatchRing> ring_;

  // Used by the consumer; `stats_` is also read by others.
  mutable Mutex stats_mutex_;
  Stats stats_ MXTRAIN_GUARDED_BY(stats_mutex_);
  bool reported_full_ = false;
  std::vector<engine::VarHandle> writes_;  // of the pushed slot
  std::set<int64_t> bad_;                  // indices of the examples in stats_.bad

  std::atomic<int64_t> bytes_{0};
  ThreadGroup workers_{[this] { ring_->Stop(); }};
};

Pipeline::Pipeline(Runtime& runtime, const std::shared_ptr<const Source>& source, MultiScale scales,
                   const PipelineParam& param)
    : runtime_(runtime),
      param_((CheckParam(param, *source), param)),
      scales_(std::move(scales)),
      mosaic_({param.mosaic, param.mosaic_epochs}, static_cast<uint64_t>(param.seed)),
      mixer_(MixerOf(param)),
      classes_(param.balanced ? ClassesOf(*source) : std::vector<int>()) {
  for (const std::vector<TransformSpec>& transforms : scales_.chains) AddSize(source, transforms);
  ring_ = std::make_shared<BatchRing>(param.batch_size, largest().cheap() ? 32 : 1);
  batches_ = CountBatches();
  allowed_bad_ = ToleratedBad(param_.max_bad, examples());
  for (int i = 0; i < param_.prefetch + 1; ++i) AddSlot();
  for (int i = 0; i < WorkerCount(param_.workers); ++i) workers_.Start([this, i] { Work(i); });
}

void Pipeline::AddSize(const std::shared_ptr<const Source>& source,
                       const std::vector<TransformSpec>& transforms) {
  const LoaderOptions options{
      static_cast<uint64_t>(param_.seed),
      param_.channels,
      param_.exact_decode,
      param_.bits,
      CacheBytes(param_),
      {param_.soft_labels, param_.label_smoothing},
      ExamplesOfObjects(param_, *source),
      param_.origins,
      param_.pixels && !Mixes(param_) && param_.mosaic == 0 && param_.bits == 8};
  const auto& loader =
      loaders_.emplace_back(std::make_unique<const ExampleLoader>(source, transforms, options));
  BatchArrays& arrays = sizes_.emplace_back();
  arrays.data = Describe(source->data_fields(), loader->data_shapes(), param_.batch_size,
                         param_.data_name, source->data_fields().size() == 1);
  for (size_t i = 0; i < arrays.data.size(); ++i) arrays.data[i].pixels = loader->left_to_do(i);
  arrays.label = Describe(source->label_fields(), loader->label_shapes(), param_.batch_size,
                          param_.label_name, HasOneLabel(*source));
}

Pipeline::~Pipeline() {
  workers_.End();
  ring_->Close();
}

// The same for all parts, which may wait for each other in every batch.
int64_t Pipeline::CountBatches() const {
  const int64_t parts = param_.num_parts, together = parts * param_.batch_size;
  if (!training() || param_.keep_remainder) return CeilDivide(examples(), together);
  if (examples() < together) {
    Throw(ErrorKind::kConfig, "batch_size = {}{} is more than the {} examples; use a smaller one",
          param_.batch_size, parts > 1 ? format(" in each of {} parts", parts) : "", examples());
  }
  return examples() / together;
}

void Pipeline::AddSlot() {
  auto slot = std::make_unique<Slot>();
  for (const DataDesc& desc : sizes_.back().data)
    slot->data.emplace_back(runtime_, desc.array_shape(), desc.array_type(), param_.memory,
                            Layout(), "batch " + desc.name);
  for (const DataDesc& desc : sizes_.back().label)
    slot->label.emplace_back(runtime_, desc.shape, desc.type, param_.memory, Layout(),
                             "batch " + desc.name);
  if (param_.origins) slot->origins.resize(static_cast<size_t>(param_.batch_size));
  ring_->AddSlot(std::move(slot));
}

void Pipeline::Push(Slot* slot) {
  writes_.clear();
  for (const NDArray& array : slot->data) writes_.push_back(array.var());
  for (const NDArray& array : slot->label) writes_.push_back(array.var());
  engine::PushOptions options;
  options.property = engine::FnProperty::kIO;
  options.name = "batch";
  options.renews = writes_;
  runtime_.engine().PushAsync(Ticket(ring_, slot), {}, writes_, options);
}

void Pipeline::Reset(int64_t epoch, int64_t first_batch) {
  if (epoch < 0 || first_batch < 0 || first_batch > batches_) {
    Throw(ErrorKind::kUsage, "there is no batch {} of epoch {}; an epoch has {} batches",
          first_batch, epoch, batches_);
  }
  auto plan = std::make_shared<EpochPlan>();
  plan->epoch = epoch;
  plan->batch_size = param_.batch_size;
  plan->batches = batches_;
  plan->part = param_.part_index;
  plan->parts = param_.num_parts;
  const OrderOptions order{static_cast<uint64_t>(param_.seed), param_.shuffle};
  plan->order = classes_.empty() ? EpochOrder(examples(), order, epoch)
                                 : BalancedOrder(classes_, order, epoch);
  ring_->Restart(std::move(plan), first_batch);
}

bool Pipeline::Next(DataBatch* batch) {
  // Release everything except the vectors' memory.
  batch->lease.reset();
  batch->data.clear();
  batch->label.clear();
  batch->bad.clear();
  batch->origins.clear();
  if (!ring_->plan()) Reset(0, 0);
  const bool more = Advance(batch);
  if (more && training()) CheckBad();
  ReportFullCache();
  return more;
}

bool Pipeline::Advance(DataBatch* batch) {
  for (;;) {
    const BatchRing::Event event = ring_->NextEvent();
    switch (event.kind) {
      case BatchRing::Event::kPush:
        Push(event.slot);
        break;
      case BatchRing::Event::kGrow:
        AddSlot();
        break;
      case BatchRing::Event::kSkipped:
        ThrowErrorOf(*event.slot);
        break;
      case BatchRing::Event::kDelivered:
        Deliver(event.slot, batch);
        return true;
      case BatchRing::Event::kEnd:
        return false;
    }
  }
}

// Waits for every array of the slot, so none keeps the error.
void Pipeline::ThrowErrorOf(const Slot& slot) const {
  std::exception_ptr error;
  const auto wait = [&error](const NDArray& array) {
    try {
      array.WaitToRead();
    } catch (...) {
      error = std::current_exception();
    }
  };
  std::for_each(slot.data.begin(), slot.data.end(), wait);
  std::for_each(slot.label.begin(), slot.label.end(), wait);
  if (error) std::rethrow_exception(error);
}

void Pipeline::Deliver(Slot* slot, DataBatch* batch) {
  const std::shared_ptr<const EpochPlan> plan = ring_->plan();
  batch->lease = ring_->Lease(slot);
  if (slot->error) {
    batch->lease.reset();
    std::rethrow_exception(slot->error);
  }
  const BatchArrays& arrays = sizes_[DrawnSize(plan->epoch, slot->batch)];
  for (size_t i = 0; i < arrays.data.size(); ++i)
    batch->data.push_back(BeginningOf(slot->data[i], arrays.data[i].array_shape()));
  for (size_t i = 0; i < arrays.label.size(); ++i)
    batch->label.push_back(BeginningOf(slot->label[i], arrays.label[i].array_shape()));
  batch->index = slot->index;
  batch->count = static_cast<int64_t>(slot->index.size());
  batch->origins = slot->origins;
  if (param_.origins) batch->origins.resize(slot->index.size());
  batch->epoch = plan->epoch;
  batch->batch = slot->batch;
  std::sort(slot->bad.begin(), slot->bad.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  MutexLock lock(stats_mutex_);
  stats_.examples += batch->count;
  for (auto& [row, bad] : slot->bad) {
    if (bad_.insert(bad.index).second) stats_.bad.emplace_back(bad.name, bad.reason);
    batch->bad.push_back(std::move(bad));
  }
}

void Pipeline::CheckBad() const {
  MutexLock lock(stats_mutex_);
  if (static_cast<int64_t>(bad_.size()) <= allowed_bad_) return;
  const auto& [name, reason] = stats_.bad.back();
  Throw(ErrorKind::kData,
        "{} of {} examples are unreadable so far, more than max_bad = {} (data.max_bad) allows; "
        "the last "
        "is {}: {}; `mxtrain check` lists them all: "
        "repair or remove them, or allow more",
        bad_.size(), examples(), param_.max_bad, name, reason);
}

void Pipeline::ReportFullCache() {
  const ExampleCache* cache = largest().cache();
  if (reported_full_ || !cache || !cache->full()) return;
  reported_full_ = true;
  runtime_.log("io").Warning(
      "the cache is full: {} of {} examples take {} MiB; the others are decoded each time",
      cache->count(), source().size(), cache->bytes() >> 20);
}

DataIter::Stats Pipeline::stats() const {
  MutexLock lock(stats_mutex_);
  Stats stats = stats_;
  stats.bytes = bytes_.load(std::memory_order_relaxed);
  return stats;
}

void Pipeline::Work(int worker) {
  const std::string lane = format("decode {}", worker);
  LoaderScratch scratch;
  Claim claim;
  while (ring_->Take(&claim)) {
    const int64_t begin = SteadyNanoseconds();
    RowReports bad;
    std::exception_ptr error;
    try {
      const ExampleLoader& loader = *loaders_[DrawnSize(claim.plan->epoch, claim.batch)];
      for (int64_t row = claim.begin; row < claim.end; ++row)
        LoadRow(claim, loader, row, &scratch, &bad);
    } catch (...) {
      error = std::current_exception();
    }
    bytes_.fetch_add(std::exchange(scratch.bytes, 0), std::memory_order_relaxed);
    runtime_.engine().ProfileSpan(lane, format("decode {}:{}", claim.plan->epoch, claim.batch),
                                  begin, SteadyNanoseconds());
    if (!ring_->Give(claim, std::move(bad), error)) continue;
    Seal(*claim.plan, claim.slot);
    ring_->Finish(claim.slot);
  }
}

void Pipeline::LoadRow(const Claim& claim, const ExampleLoader& loader, int64_t row,
                       LoaderScratch* scratch, RowReports* bad) const {
  const EpochPlan& plan = *claim.plan;
  Slot& slot = *claim.slot;
  const bool real = row < plan.count(claim.batch);
  const int64_t choices = real ? plan.examples() : examples();
  const int64_t attempts = training() ? std::min(allowed_bad_ + 1, choices) : 1;
  for (int64_t step = 0; step < attempts; ++step) {
    const int64_t index = plan.index(claim.batch, row, step);
    const std::optional<Refusal> refusal = loader.Load(index, plan.epoch, row, slot.rows, scratch);
    if (!refusal) {
      if (real) slot.index[static_cast<size_t>(row)] = index;
      return;
    }
    if (real) bad->emplace_back(row, BadExample{index, source().Name(index), refusal->reason});
  }
  if (training() && real && attempts == choices) {
    const BadExample& last = bad->back().second;
    Throw(ErrorKind::kData, "none of the {} examples{} can be read; the last is {}: {}", attempts,
          plan.parts > 1 ? format(" of part {} of {}", plan.part, plan.parts) : "", last.name,
          last.reason);
  }
  loader.Clear(row, slot.rows);  // in training, CheckBad now finds too many bad examples
}

// Moves examples to the front: unreadable ones leave no gaps.
void Pipeline::Seal(const EpochPlan& plan, Slot* slot) const {
  const ExampleLoader& loader = *loaders_[DrawnSize(plan.epoch, slot->batch)];
  int64_t count = 0;
  for (int64_t row = 0; row < param_.batch_size; ++row) {
    const int64_t index = slot->index[static_cast<size_t>(row)];
    if (index < 0) continue;
    if (row != count) loader.CopyRow(row, count, slot->rows);
    slot->index[static_cast<size_t>(count++)] = index;
  }
  slot->index.resize(static_cast<size_t>(count));
  // Each part draws its own random numbers.
  const int64_t batch = slot->batch * plan.parts + plan.part;
  mosaic_.Apply(plan.epoch, batch, count, loader, slot->rows);
  mixer_.Mix(plan.epoch, batch, count, loader, slot->rows);
}

}  // namespace

void PipelineParam::Feed(Context device) {
  if (device.type != DeviceType::kGPU) return;
  memory = Context::cpu_pinned(device.id);
  pixels = true;
}

std::unique_ptr<DataIter> NewPipeline(Runtime& runtime, std::shared_ptr<const Source> source,
                                      const std::vector<TransformSpec>& transforms,
                                      const PipelineParam& param) {
  return NewMultiScalePipeline(runtime, source, MultiScale{{transforms}}, param);
}

std::unique_ptr<DataIter> NewMultiScalePipeline(Runtime& runtime,
                                                const std::shared_ptr<const Source>& source,
                                                const MultiScale& scales,
                                                const PipelineParam& param) {
  MXTRAIN_ASSERT(!scales.chains.empty() && scales.batches >= 1);
  if (scales.chains.size() > 1 && param.cache == PipelineParam::kRam)
    Throw(ErrorKind::kConfig, "cache: ram keeps images of one size, and these have several");
  runtime.log("io").Debug("pipeline: {} examples, batches of {}, {} transforms, {}", source->size(),
                          param.batch_size, scales.chains.front().size(),
                          Counted(std::ssize(scales.chains), "size"));
  return std::make_unique<Pipeline>(runtime, source, scales, param);
}

}  // namespace mxtrain::io
