// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches at no cost: one batch of pseudo-random numbers, returned again and again.
#include <vector>

#include "app/config/net.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::commands {

class SyntheticIter final : public DataIter {
 public:
  // Batches of these arrays, whose shapes include the batch. Data is on `ctx`; so are labels, which
  // losses on the host also read; they are 0.
  SyntheticIter(Runtime& runtime, Context ctx, std::vector<DataDesc> data,
                std::vector<DataDesc> label);
  // Batches for a net.
  SyntheticIter(Runtime& runtime, Context ctx, const config::Net& net, int64_t batch);

  std::vector<DataDesc> provide_data() const override { return data_; }
  std::vector<DataDesc> provide_label() const override { return label_; }
  int64_t batch_size() const override { return one_.count; }
  int64_t batches_per_epoch() const override { return int64_t{1} << 40; }
  int64_t examples() const override { return batch_size() * batches_per_epoch(); }
  std::string ExampleName(int64_t index) const override;
  void Reset(int64_t, int64_t first_batch) override { next_ = first_batch; }
  bool Next(DataBatch* batch) override;
  Stats stats() const override { return {}; }

 private:
  std::vector<DataDesc> data_, label_;
  int64_t next_ = 0;
  DataBatch one_;
};

}  // namespace mxtrain::commands
