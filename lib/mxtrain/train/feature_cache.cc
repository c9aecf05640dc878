// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/feature_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"
#include "mxtrain/io/subset.h"
#include "mxtrain/train/internal/feature_file.h"

namespace mxtrain {

// Examples whose data are features, and what the head reads beside them. Set may be called until
// the first Read, then it is immutable like every source.
class FeatureSource final : public io::Source {
 public:
  // `shapes`: of the features of one example of these.
  FeatureSource(std::shared_ptr<const io::Source> examples, const FeatureCut& cut,
                const std::vector<TShape>& shapes, const std::vector<DataDesc>& labels)
      : examples_(std::move(examples)), label_fields_(examples_->label_fields()) {
    for (size_t i = 0; i < cut.names.size(); ++i)
      data_fields_.push_back({cut.names[i], io::FieldKind::kValues, shapes[i]});
    for (size_t i = 0; i < cut.inputs.size(); ++i)
      data_fields_.push_back({cut.inputs[i], io::FieldKind::kValues, cut.input_shapes[i]});
    for (size_t i = 0; i < labels.size(); ++i) {
      io::FieldSpec& field = label_fields_[i];
      field.name = labels[i].name;
      if (field.kind == io::FieldKind::kValues) continue;
      const TShape& batch = labels[i].shape;  // targets and points are in it as they are used
      field.kind = io::FieldKind::kValues;
      field.shape = TShape(std::span(batch.begin() + 1, static_cast<size_t>(batch.ndim() - 1)));
    }
    for (const auto* fields : {&data_fields_, &label_fields_}) {
      for (const io::FieldSpec& field : *fields) numbers_ += field.shape.Size();
    }
  }

  int64_t size() const override { return examples_->size(); }
  const std::vector<io::FieldSpec>& data_fields() const override { return data_fields_; }
  const std::vector<io::FieldSpec>& label_fields() const override { return label_fields_; }
  std::string Name(int64_t index) const override { return examples_->Name(index); }
  std::string FileOf(int64_t index) const override { return examples_->FileOf(index); }
  std::optional<int> ClassOf(int64_t index) const override { return examples_->ClassOf(index); }
  const std::vector<std::string>& class_names() const override { return examples_->class_names(); }

  void Read(int64_t index, io::Sample* sample) const override {
    if (values_.empty() || !is_known_[static_cast<size_t>(index)]) {
      const auto reason = reasons_.find(index);
      Throw(ErrorKind::kData, "{}", reason == reasons_.end() ? "not computed" : reason->second);
    }
    const float* next = values_.data() + index * numbers_;
    const auto take = [&next](const std::vector<io::FieldSpec>& fields,
                              std::vector<io::FieldValue>* to) {
      to->resize(fields.size());
      for (size_t i = 0; i < fields.size(); ++i) {
        const auto count = static_cast<size_t>(fields[i].shape.Size());
        (*to)[i] = {};
        (*to)[i].values = {next, count};
        next += count;
      }
    };
    take(data_fields_, &sample->data);
    take(label_fields_, &sample->labels);
  }

  // Of the `row`-th of `rows` examples, of all fields.
  void Set(int64_t index, const std::vector<std::vector<float>>& fields, int64_t row,
           int64_t rows) {
    float* next = PlaceFor(index);
    int64_t set = 0;
    for (const std::vector<float>& field : fields) {
      const int64_t count = static_cast<int64_t>(field.size()) / rows;
      set += count;
      MXTRAIN_ASSERT(set <= numbers_);
      next = std::copy_n(field.begin() + row * count, count, next);
    }
    MXTRAIN_ASSERT(set == numbers_);
  }
  // All numbers of an example, as NumbersOf gives them.
  void Set(int64_t index, std::span<const float> numbers) {
    MXTRAIN_ASSERT(std::ssize(numbers) == numbers_);
    std::ranges::copy(numbers, PlaceFor(index));
  }
  // Empty for an example that was not set.
  std::span<const float> NumbersOf(int64_t index) const {
    if (values_.empty() || !is_known_[static_cast<size_t>(index)]) return {};
    return {values_.data() + index * numbers_, static_cast<size_t>(numbers_)};
  }
  int64_t numbers() const { return numbers_; }
  void Clear() { is_known_.assign(is_known_.size(), false); }
  void SetUnreadable(int64_t index, const std::string& reason) { reasons_[index] = reason; }
  int64_t Bytes() const { return size() * numbers_ * static_cast<int64_t>(sizeof(float)); }

 private:
  float* PlaceFor(int64_t index) {
    if (values_.empty()) {
      values_.resize(static_cast<size_t>(size() * numbers_));
      is_known_.resize(static_cast<size_t>(size()));
    }
    is_known_[static_cast<size_t>(index)] = true;
    return values_.data() + index * numbers_;
  }

  const std::shared_ptr<const io::Source> examples_;
  std::vector<io::FieldSpec> data_fields_, label_fields_;
  int64_t numbers_ = 0;                     // of one example
  std::vector<float> values_;               // of all, allocated by the first Set
  std::vector<bool> is_known_;              // likewise
  std::map<int64_t, std::string> reasons_;  // why examples cannot be read
};

// What computes the features of one data set.
struct FeatureCache::Set {
  std::unique_ptr<DataIter> examples;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<const InputOrder> order;
  FeatureSource* to = nullptr;
  std::vector<int64_t> numbers;  // of the examples in `to`; empty: all, in order
  bool is_whole = true;          // `examples` iterates over all
  std::vector<NDArray> inputs;   // kept to avoid allocations
  bool any_place = true;         // no bit depends on the place in the batch, as far as was seen
  int64_t IndexOf(int64_t index) const {
    return numbers.empty() ? index : numbers[static_cast<size_t>(index)];
  }
};

namespace {

std::set<std::string> NamesOf(const std::vector<DataDesc>& descs) {
  std::set<std::string> names;
  for (const DataDesc& desc : descs) names.insert(desc.name);
  return names;
}

std::map<std::string, TShape> ShapesOf(const DataIter& iter) {
  std::map<std::string, TShape> shapes;
  for (const DataDesc& desc : ArraysOf(iter)) shapes[desc.name] = desc.shape;
  return shapes;
}

FeatureCut CutFor(Runtime& runtime, const TrainOptions& options, const DataIter& train) {
  return CutAtFeatures(runtime.operators(), options.symbol, ShapesOf(train),
                       NamesOf(train.provide_data()), NamesOf(train.provide_label()),
                       options.lr_mult);
}

// Examples of a batch among others: from the second one on in the first half, the first one in all
// other places. Of two, the second one among zeros.
NDArray AmongOthers(const NDArray& batch) {
  NDArray changed = batch.Copy(batch.ctx());
  const int64_t rows = batch.shape()[0], half = rows / 2;
  changed.Slice(0, half).CopyFrom(batch.Slice(1, half + 1));
  for (int64_t row = half; row < rows; ++row) {
    if (rows == 2) {
      changed.Slice(row, row + 1).Fill(0);
    } else {
      changed.Slice(row, row + 1).CopyFrom(batch.Slice(0, 1));
    }
  }
  return changed;
}

}  // namespace

FeatureCache::FeatureCache(Runtime& runtime, const TrainOptions& options, const DataIter& train,
                           const DataIter* val)
    : runtime_(runtime),
      options_(options),
      cut_((CheckFeatureOptions(options), CutFor(runtime, options, train))) {
  const FeatureOptions& data = *options.features;
  train_source_ =
      std::make_shared<FeatureSource>(data.train, cut_, cut_.shapes, train.provide_label());
  // Images of validation may have another size.
  if (val) {
    val_source_ = std::make_shared<FeatureSource>(
        data.val, cut_, FeatureShapes(cut_.trunk, ShapesOf(*val)), val->provide_label());
  }
  CheckFeatureBytes(cut_, Bytes(), data.limit_bytes);
  train_ = data.over(/*validation=*/false, train_source_);
  if (val) val_ = data.over(/*validation=*/true, val_source_);
  training_ = std::make_unique<Set>(MakeSet(/*validation=*/false));
  args_ = training_->executor->args();
  auxs_ = training_->executor->auxs();
  if (val) validation_ = std::make_unique<Set>(MakeSet(/*validation=*/true));
}

FeatureCache::~FeatureCache() = default;

int64_t FeatureCache::Bytes() const {
  return train_source_->Bytes() + (val_source_ ? val_source_->Bytes() : 0);
}

// Each set is computed as the uncached run would: in training, or in evaluation.
FeatureCache::Set FeatureCache::MakeSet(bool validation) const {
  Set set;
  const FeatureOptions& data = *options_.features;
  set.examples = data.whole(validation, validation ? data.val : data.train);
  const Symbol trunk = OnBatchesOf(*set.examples, runtime_.operators(), cut_.trunk);
  Executor::BindRequest request =
      EvaluationRequest(trunk, ArraysOf(*set.examples), options_.workers[0], options_.modes);
  request.is_train = !validation;
  set.executor = Executor::SimpleBind(runtime_, trunk, std::move(request),
                                      validation ? training_->executor.get() : nullptr);
  set.order = std::make_unique<InputOrder>(*set.executor, *set.examples);
  set.to = (validation ? val_source_ : train_source_).get();
  return set;
}

bool FeatureCache::Fill(const std::function<bool()>& stop) {
  if (!training_) return true;
  const double begin = SteadySeconds();
  computed_ = found_ = 0;
  if (options_.features->folder.empty())
    TellOfLayers(train_source_->size() + (val_source_ ? val_source_->size() : 0), "");
  if (!cut_.held_up_by.empty()) {
    runtime_.log("train").Warning(
        "the frozen layers from {} on are computed in every step, since it draws random numbers; "
        "turn it off to have all of them computed once",
        cut_.held_up_by);
  }
  if (!Complete(/*validation=*/false, stop)) return false;
  if (validation_ && !Complete(/*validation=*/true, stop)) return false;
  validation_.reset();
  training_.reset();
  Tell(SteadySeconds() - begin);
  return true;
}

// All features of one set.
bool FeatureCache::Complete(bool validation, const std::function<bool()>& stop) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  Set* const set = (validation ? validation_ : training_).get();
  const FeatureOptions& data = *options_.features;
  const std::shared_ptr<const io::Source>& source = validation ? data.val : data.train;
  if (data.folder.empty()) {
    computed_ += source->size();
    return FillFrom(set, stop, kAll);
  }
  FeatureFile file(data.folder,
                   FeatureKey(runtime_, options_, cut_, args_, auxs_, *set->examples, validation),
                   set->to->numbers(), runtime_.log("train"));
  const std::vector<std::optional<uint64_t>> identities = RecordIdentities(*source);
  TakeFrom(&file, identities, set);
  const int64_t missing = std::ssize(set->numbers), found = source->size() - missing;
  runtime_.log("train").Info("features: {} of {} {} images are in {}", found, source->size(),
                             validation ? "validation" : "training", file.path());
  found_ += found;
  if (missing == 0) {
    if (!file.any_place()) TellOfPlaces();
    return true;
  }
  TellOfLayers(missing, validation ? "validation " : "training ");
  computed_ += missing;
  const bool is_whole = missing == source->size();
  if (!is_whole || !set->is_whole)
    set->examples = data.whole(validation, is_whole ? source : io::NewSubset(source, set->numbers));
  set->is_whole = is_whole;
  if (!FillFrom(set, stop, kAll)) return false;
  for (const int64_t i : set->numbers) {
    const auto identity = identities[static_cast<size_t>(i)];
    const std::span<const float> numbers = set->to->NumbersOf(i);
    if (identity && !numbers.empty()) file.Add(*identity, numbers);
  }
  try {
    file.Save(set->any_place);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kFileSystem && e.kind() != ErrorKind::kData) throw;
    runtime_.log("train").Warning("{}; other runs will compute these features again", e.what());
  }
  return true;
}

// Sets the examples whose features are in the file; the others' numbers are set->numbers.
void FeatureCache::TakeFrom(FeatureFile* file,
                            const std::vector<std::optional<uint64_t>>& identities, Set* set) {
  std::unordered_map<uint64_t, std::vector<int64_t>> wanted;  // the examples of each record
  for (size_t i = 0; i < identities.size(); ++i) {
    if (identities[i]) wanted[*identities[i]].push_back(static_cast<int64_t>(i));
  }
  set->to->Clear();  // of an earlier call
  if (!file->any_place() && !file->HoldsInOrder(identities)) file->Clear();
  const bool in_order = !file->any_place();
  int64_t row = 0;
  const bool is_right = file->Read([&](uint64_t identity, std::span<const float> numbers) {
    if (in_order) return set->to->Set(row++, numbers);  // equal records have other last bits
    const auto found = wanted.find(identity);
    if (found == wanted.end()) return;
    for (const int64_t i : found->second) set->to->Set(i, numbers);
  });
  if (!is_right) set->to->Clear();
  set->numbers.clear();
  for (int64_t i = 0; i < set->to->size(); ++i) {
    if (set->to->NumbersOf(i).empty()) set->numbers.push_back(i);
  }
}

bool FeatureCache::FillFrom(Set* set, const std::function<bool()>& stop, int64_t most_batches) {
  constexpr double kBetweenLines = 30;  // seconds
  DataBatch batch;
  double told = SteadySeconds();
  set->examples->Reset(0);
  for (int64_t b = 0; b < most_batches && set->examples->Next(&batch); ++b) {
    if (stop && stop()) return false;
    if (b == 0 && (set == training_.get() || !options_.features->folder.empty()))
      set->any_place = CheckIndependence(set, batch);
    std::vector<std::vector<float>> fields;
    for (const NDArray& output : Run(set, batch)) fields.push_back(output.ToVector());
    for (const NDArray& input : InputsOf(*set, batch)) fields.push_back(input.ToVector());
    for (const NDArray& label : batch.label) fields.push_back(label.ToVector());
    for (int64_t row = 0; row < batch.count; ++row) {
      set->to->Set(set->IndexOf(batch.index[static_cast<size_t>(row)]), fields, row,
                   set->examples->batch_size());
    }
    for (const BadExample& bad : batch.bad)
      set->to->SetUnreadable(set->IndexOf(bad.index), bad.reason);
    if (SteadySeconds() < told + kBetweenLines) continue;
    told = SteadySeconds();
    runtime_.log("train").Info("features of {} of {} {} images are computed",
                               (b + 1) * set->examples->batch_size(), set->examples->examples(),
                               set == training_.get() ? "training" : "validation");
  }
  const auto bad = set->examples->stats().bad;
  if (!bad.empty()) {
    runtime_.log("train").Warning("{} could not be read, the first: {}: {}",
                                  Counted(bad.size(), "example"), bad[0].first, bad[0].second);
  }
  return true;
}

std::vector<NDArray> FeatureCache::InputsOf(const Set& set, const DataBatch& batch) const {
  const std::vector<DataDesc> data = set.examples->provide_data();
  std::vector<NDArray> arrays;
  for (const std::string& name : cut_.inputs) {
    const auto found = std::ranges::find(data, name, &DataDesc::name);
    MXTRAIN_ASSERT(found != data.end());
    arrays.push_back(batch.data[static_cast<size_t>(found - data.begin())]);
  }
  return arrays;
}

std::vector<NDArray> FeatureCache::Run(Set* set, const DataBatch& batch) {
  set->order->Arrange(batch, &set->inputs);
  set->executor->Forward(set->inputs);
  set->inputs.clear();
  return set->executor->outputs();
}

// Examples must have the same features among others and in other places, up to rounding. Whether
// they have them bit for bit.
bool FeatureCache::CheckIndependence(Set* set, const DataBatch& batch) {
  constexpr double kRounding = 1e-4;  // of the largest number
  const int64_t rows = set->examples->batch_size();
  if (rows == 1) return true;
  std::vector<std::vector<float>> before;
  for (const NDArray& output : Run(set, batch)) before.push_back(output.ToVector());
  DataBatch changed;
  for (const NDArray& array : batch.data) changed.data.push_back(AmongOthers(array));
  changed.label = batch.label;
  const std::vector<NDArray> outputs = Run(set, changed);
  bool same = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<float> after = outputs[i].ToVector();
    const size_t one = after.size() / static_cast<size_t>(rows);
    double largest = 0, difference = 0;
    for (size_t k = 0; k < static_cast<size_t>(rows / 2) * one; ++k) {
      const double expected = before[i][one + k];
      largest = std::max(largest, std::abs(expected));
      difference = std::max(difference, std::abs(expected - after[k]));
    }
    same = same && difference == 0;
    if (difference <= kRounding * largest) continue;
    Throw(ErrorKind::kConfig,
          "features: {} depends on the other examples of a batch, so it cannot be computed once",
          cut_.trunk.ListOutputs()[i]);
  }
  if (!same && set == training_.get()) TellOfPlaces();
  return same;
}

void FeatureCache::TellOfPlaces() const {
  runtime_.log("train").Info(
      "features: their last bits depend on the place of an image in its batch; results are those "
      "without a cache up to rounding");
}

DataBatch FeatureCache::Rehearse() {
  DataBatch first;
  training_->examples->Reset(0);
  if (!training_->examples->Next(&first))
    Throw(ErrorKind::kData, "the training data hold no examples");
  CheckIndependence(training_.get(), first);
  DataBatch batch = first;
  batch.data.clear();
  for (const NDArray& output : Run(training_.get(), first))
    batch.data.push_back(output.Copy(output.ctx()));
  for (const NDArray& input : InputsOf(*training_, first)) batch.data.push_back(input);
  if (validation_) FillFrom(validation_.get(), {}, 1);
  return batch;
}

// `set`: of the images, as in "training images"; "": both.
void FeatureCache::TellOfLayers(int64_t images, const char* set) const {
  runtime_.log("train").Info("computing the features of {} {}images once: {} layers up to '{}'",
                             images, set, cut_.layers, cut_.last);
}

void FeatureCache::Tell(double seconds) const {
  const std::string how = found_ == 0      ? "computed"
                          : computed_ == 0 ? "read"
                                           : format("{} computed and {} read", computed_, found_);
  runtime_.log("train").Info("features: {} numbers for each image, {} in memory, {} in {:.1f} s",
                             cut_.Numbers(), FormatBytes(Bytes()), how, seconds);
}

}  // namespace mxtrain
