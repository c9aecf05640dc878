// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/bucketed_iter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/io/image.h"
#include "mxtrain/io/internal/epoch_order.h"
#include "mxtrain/io/subset.h"

namespace mxtrain::io {
namespace {

class ShortenedLists final : public Source {
 public:
  ShortenedLists(std::shared_ptr<const Source> source, int64_t length)
      : source_(std::move(source)), data_(source_->data_fields()) {
    MXTRAIN_ASSERT(data_.size() == 1 && length <= data_[0].shape[0]);
    data_[0].shape = TShape{length};
  }
  int64_t size() const override { return source_->size(); }
  const std::vector<FieldSpec>& data_fields() const override { return data_; }
  const std::vector<FieldSpec>& label_fields() const override { return source_->label_fields(); }
  void Read(int64_t index, Sample* sample) const override {
    source_->Read(index, sample);
    auto& values = sample->data[0].values;
    values = values.first(static_cast<size_t>(data_[0].shape[0]));
  }
  std::span<const float> LabelOf(int64_t index, size_t position, Sample* scratch) const override {
    return source_->LabelOf(index, position, scratch);
  }
  std::string Name(int64_t index) const override { return source_->Name(index); }
  std::string TextOf(int64_t index) const override { return source_->TextOf(index); }
  bool IsCut(int64_t index) const override { return source_->IsCut(index); }
  int64_t num_tokens() const override { return source_->num_tokens(); }
  bool ignores_labels() const override { return source_->ignores_labels(); }
  std::optional<int> ClassOf(int64_t index) const override { return source_->ClassOf(index); }
  const std::vector<std::string>& class_names() const override { return source_->class_names(); }

 private:
  const std::shared_ptr<const Source> source_;
  std::vector<FieldSpec> data_;
};

class BucketedIter final : public DataIter {
 public:
  BucketedIter(std::shared_ptr<const Source> source, std::vector<Bucket> buckets,
               std::vector<std::unique_ptr<DataIter>> iters, uint64_t seed, bool shuffle)
      : source_(std::move(source)),
        buckets_(std::move(buckets)),
        iters_(std::move(iters)),
        order_options_{seed, shuffle} {
    MXTRAIN_ASSERT(!iters_.empty() && iters_.size() == buckets_.size());
    for (size_t b = 0; b < iters_.size(); ++b) {
      const auto count = static_cast<size_t>(iters_[b]->batches_per_epoch());
      bucket_of_.insert(bucket_of_.end(), count, b);
    }
  }

  std::vector<DataDesc> provide_data() const override { return iters_.back()->provide_data(); }
  std::vector<DataDesc> provide_label() const override { return iters_.back()->provide_label(); }
  std::vector<BatchArrays> sizes() const override {
    std::vector<BatchArrays> all;
    for (const auto& iter : iters_) all.push_back({iter->provide_data(), iter->provide_label()});
    return all;
  }
  int64_t batch_size() const override { return iters_.back()->batch_size(); }
  int64_t batches_per_epoch() const override { return std::ssize(bucket_of_); }
  int64_t examples() const override { return source_->size(); }
  std::string ExampleName(int64_t index) const override { return source_->Name(index); }

  void Reset(int64_t epoch, int64_t first_batch) override {
    if (epoch < 0 || first_batch < 0 || first_batch > batches_per_epoch()) {
      Throw(ErrorKind::kUsage, "there is no batch {} of epoch {}; an epoch has {} batches",
            first_batch, epoch, batches_per_epoch());
    }
    order_ = EpochOrder(batches_per_epoch(), order_options_, epoch);
    std::vector<int64_t> delivered(iters_.size());
    for (int64_t i = 0; i < first_batch; ++i) ++delivered[BucketAt(i)];
    for (size_t b = 0; b < iters_.size(); ++b) iters_[b]->Reset(epoch, delivered[b]);
    next_ = first_batch;
  }

  bool Next(DataBatch* batch) override {
    if (order_.empty()) Reset(0, 0);
    if (next_ >= std::ssize(order_)) {
      *batch = DataBatch();
      return false;
    }
    const size_t b = BucketAt(next_);
    const int64_t number = next_++;  // an error of it is not met again
    if (!iters_[b]->Next(batch)) Throw(ErrorKind::kBug, "bucket {} has fewer batches", b);
    for (int64_t& index : batch->index) index = InSource(b, index);
    for (BadExample& bad : batch->bad) bad.index = InSource(b, bad.index);
    batch->batch = number;
    return true;
  }

  Stats stats() const override {
    Stats all;
    for (const auto& iter : iters_) {
      Stats own = iter->stats();
      all.examples += own.examples;
      all.bytes += own.bytes;
      std::move(own.bad.begin(), own.bad.end(), std::back_inserter(all.bad));
    }
    return all;
  }

 private:
  size_t BucketAt(int64_t place) const {
    return bucket_of_[static_cast<size_t>(order_[static_cast<size_t>(place)])];
  }
  int64_t InSource(size_t bucket, int64_t index) const {
    return buckets_[bucket].examples[static_cast<size_t>(index)];
  }

  const std::shared_ptr<const Source> source_;
  const std::vector<Bucket> buckets_;
  const std::vector<std::unique_ptr<DataIter>> iters_;
  const OrderOptions order_options_;
  std::vector<size_t> bucket_of_;  // of each batch, before they are ordered
  std::vector<int64_t> order_;
  int64_t next_ = 0;
};

void RequireOneField(const Source& source, FieldKind kind, const char* what) {
  const std::vector<FieldSpec>& fields = source.data_fields();
  const bool fits = fields.size() == 1 && fields[0].kind == kind &&
                    (kind == FieldKind::kImage || fields[0].shape.ndim() == 1);
  if (!fits) Throw(ErrorKind::kConfig, "buckets: the examples are not one {} each", what);
}

}  // namespace

std::vector<Bucket> MakeBuckets(std::span<const int64_t> of_examples,
                                std::span<const int64_t> lengths, int64_t least) {
  least = std::max<int64_t>(least, 1);
  std::vector<int64_t> rising(of_examples.size());
  std::iota(rising.begin(), rising.end(), int64_t{0});
  std::stable_sort(rising.begin(), rising.end(), [&](int64_t a, int64_t b) {
    return of_examples[static_cast<size_t>(a)] < of_examples[static_cast<size_t>(b)];
  });
  // From the longest down: what is above the next length, and as many more as are missing.
  std::vector<Bucket> buckets;
  for (size_t b = lengths.size(); b-- > 0;) {
    auto first = rising.end();
    while (first != rising.begin() &&
           (b == 0 || of_examples[static_cast<size_t>(*(first - 1))] > lengths[b - 1]))
      --first;
    const bool is_longest = buckets.empty();
    if (first == rising.end() && !is_longest) continue;
    const auto missing = std::max<int64_t>(least - (rising.end() - first), 0);
    first -= std::min<int64_t>(missing, first - rising.begin());
    buckets.push_back({lengths[b], {first, rising.end()}});
    rising.erase(first, rising.end());
  }
  // The shortest may be left with too few.
  if (buckets.size() > 1 && std::ssize(buckets.back().examples) < least) {
    const Bucket few = std::move(buckets.back());
    buckets.pop_back();
    std::vector<int64_t>& into = buckets.back().examples;
    into.insert(into.end(), few.examples.begin(), few.examples.end());
  }
  std::reverse(buckets.begin(), buckets.end());
  for (Bucket& bucket : buckets) std::sort(bucket.examples.begin(), bucket.examples.end());
  return buckets;
}

std::vector<int64_t> LengthsOfLists(const Source& source, float padding) {
  RequireOneField(source, FieldKind::kValues, "list of ids");
  std::vector<int64_t> lengths;
  Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, &sample);
    std::span<const float> values = sample.data[0].values;
    while (!values.empty() && values.back() == padding) values = values.first(values.size() - 1);
    lengths.push_back(std::ssize(values));
  }
  return lengths;
}

std::vector<int64_t> WidthsOfImages(const Source& source, int64_t height) {
  RequireOneField(source, FieldKind::kImage, "image");
  std::vector<int64_t> widths;
  Sample sample;
  for (int64_t i = 0; i < source.size(); ++i) {
    int64_t width = 0;
    try {
      source.Read(i, &sample);
      const auto info = ProbeImage(sample.data[0].encoded);
      if (info && info->height > 0)
        width = (int64_t{info->width} * height + info->height - 1) / info->height;
    } catch (const Error& error) {  // the pipeline tells of it
      if (error.kind() != ErrorKind::kData && error.kind() != ErrorKind::kFileSystem) throw;
    }
    widths.push_back(width);
  }
  return widths;
}

std::shared_ptr<const Source> NewShortenedLists(std::shared_ptr<const Source> source,
                                                int64_t length) {
  return std::make_shared<ShortenedLists>(std::move(source), length);
}
std::shared_ptr<const Source> NewExamplesOf(std::shared_ptr<const Source> source,
                                            std::vector<int64_t> indices) {
  return NewSubset(std::move(source), std::move(indices));
}

std::unique_ptr<DataIter> NewBucketedIter(std::shared_ptr<const Source> source,
                                          std::vector<Bucket> buckets,
                                          std::vector<std::unique_ptr<DataIter>> iters,
                                          uint64_t seed, bool shuffle) {
  return std::make_unique<BucketedIter>(std::move(source), std::move(buckets), std::move(iters),
                                        seed, shuffle);
}

}  // namespace mxtrain::io
