// SPDX-License-Identifier: Apache-2.0
// Batches of several lengths: the same training as with padding, in the memory of the longest.
#include <doctest/doctest.h>

#include <algorithm>

#include "mxtrain/base/error.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kIdRows = 6, kLongest = 12, kIds = 20, kNoId = kIds - 1;
const std::vector<int64_t> kLengths = {3, 5, 8, 10, kLongest};

// Lists of ids, of a length that differs from batch to batch; padded to the longest or not.
class IdBatches final : public DataIter {
 public:
  IdBatches(Runtime& runtime, bool padded) : runtime_(runtime), padded_(padded) {}
  std::vector<DataDesc> provide_data() const override { return {Ids(kLongest)}; }
  std::vector<DataDesc> provide_label() const override {
    return {{"softmax_label", TShape{kIdRows}}};
  }
  std::vector<BatchArrays> sizes() const override {
    if (padded_) return {{provide_data(), provide_label()}};
    std::vector<BatchArrays> all;
    for (const int64_t length : kLengths) all.push_back({{Ids(length)}, provide_label()});
    return all;
  }
  int64_t batch_size() const override { return kIdRows; }
  int64_t batches_per_epoch() const override { return 12; }
  int64_t examples() const override { return kIdRows * batches_per_epoch(); }
  std::string ExampleName(int64_t index) const override { return format("{}", index); }
  void Reset(int64_t epoch, int64_t first) override { epoch_ = epoch, next_ = first; }
  bool Next(DataBatch* batch) override {
    *batch = DataBatch();
    if (next_ == batches_per_epoch()) return false;
    const int64_t length = kLengths[static_cast<size_t>((next_ * 7 + epoch_) % 5)],
                  width = padded_ ? kLongest : length;
    std::vector<float> ids(static_cast<size_t>(kIdRows * width), kNoId), labels;
    for (int64_t row = 0; row < kIdRows; ++row) {
      for (int64_t k = 0; k < length; ++k)
        ids[static_cast<size_t>(row * width + k)] =
            static_cast<float>((row * 5 + k * k + next_) % (kIds - 1));
      labels.push_back(static_cast<float>((row + next_) % 3));
      batch->index.push_back(next_ * kIdRows + row);
    }
    batch->data = {NDArray::FromVector(runtime_, {kIdRows, width}, ids)};
    batch->label = {NDArray::FromVector(runtime_, {kIdRows}, labels)};
    batch->count = kIdRows;
    batch->epoch = epoch_, batch->batch = next_++;
    return true;
  }
  Stats stats() const override { return {}; }

 private:
  static DataDesc Ids(int64_t length) { return {"data", TShape{kIdRows, length}}; }

  Runtime& runtime_;
  const bool padded_;
  int64_t epoch_ = 0, next_ = 0;
};

// The mean of the vectors of the ids, without the padding, through dropout.
Symbol BagNet() {
  const auto op = [](const char* type, const char* name, const Kwargs& kwargs, const Symbol& of) {
    return Symbol::Create(TestRegistry(), type, name, kwargs, std::vector{of});
  };
  const Kwargs bag = {
      {"input_dim", format("{}", kIds)}, {"output_dim", "8"}, {"padding", format("{}", kNoId)}};
  const Symbol mean = op("EmbeddingBag", "bag", bag, Symbol::Variable("data")),
               dropped = op("Dropout", "dropped", {{"p", "0.3"}}, mean);
  return op("SoftmaxOutput", "softmax", {},
            op("FullyConnected", "scores", {{"num_hidden", "3"}}, dropped));
}

TrainOptions BagOptions(int workers, int64_t grad_accum) {
  TrainOptions options;
  options.symbol = BagNet();
  options.workers.assign(static_cast<size_t>(workers), Context::cpu());
  options.epochs = 2;
  options.grad_accum = grad_accum;
  options.optimizer = {"adam", {{"lr", "0.05"}}};
  options.metrics = {{"accuracy", {}, "", ""}, {"cross_entropy", {}, "", ""}};
  return options;
}

TEST_CASE("batches of several lengths train as padded ones do") {
  for (const int workers : {1, 2}) {
    for (const int64_t grad_accum : {1, 3}) {
      CAPTURE(workers);
      CAPTURE(grad_accum);
      std::vector<Bits> weights;
      std::vector<NamedValues> values;
      for (const bool padded : {false, true}) {
        const auto runtime = NewRuntime("threaded", 2, 5);
        IdBatches train(*runtime, padded), val(*runtime, padded);
        Trainer trainer(*runtime, BagOptions(workers, grad_accum), train, &val);
        Log log;
        trainer.Run(log);
        Bits& bits = weights.emplace_back();
        for (const auto& [name, array] : trainer.executor().args()) bits[name] = array.ToVector();
        NamedValues& all = values.emplace_back(log.epochs.back().train);
        for (const auto& value : log.epochs.back().val) all.push_back(value);
      }
      for (const auto& [name, own] : weights[0]) {
        CAPTURE(name);
        for (size_t i = 0; i < own.size(); ++i)
          CHECK(own[i] == doctest::Approx(weights[1][name][i]).epsilon(1e-5));
      }
      REQUIRE(values[0].size() == values[1].size());
      for (size_t i = 0; i < values[0].size(); ++i)
        CHECK(values[0][i].second == doctest::Approx(values[1][i].second).epsilon(1e-5));
    }
  }
}

// A net whose activations, not its outputs, take the memory.
Symbol WideNet() {
  const auto op = [](const char* type, const char* name, const Kwargs& kwargs, const Symbol& of) {
    return Symbol::Create(TestRegistry(), type, name, kwargs, std::vector{of});
  };
  const Symbol vectors = op("Embedding", "vectors",
                            {{"input_dim", format("{}", kIds)}, {"output_dim", "64"}},
                            Symbol::Variable("data")),
               bent = op("Activation", "bent", {{"act_type", "tanh"}}, vectors),
               hidden = op("FullyConnected", "hidden", {{"num_hidden", "64"}, {"flatten", "False"}},
                           bent),
               again = op("Activation", "again", {{"act_type", "tanh"}}, hidden),
               mean = op("mean", "mean", {{"axis", "1"}}, again);
  return op("SoftmaxOutput", "softmax", {},
            op("FullyConnected", "scores", {{"num_hidden", "3"}}, mean));
}

TEST_CASE("five lengths take the memory of the longest") {
  int64_t in_use[2];
  for (const bool several : {false, true}) {
    const auto runtime = NewRuntime("threaded", 2, 5);
    IdBatches train(*runtime, /*padded=*/!several);
    TrainOptions options = BagOptions(1, 1);
    options.symbol = WideNet();
    Trainer trainer(*runtime, options, train, nullptr);
    DataBatch batch;
    while (train.Next(&batch)) trainer.Step(batch);
    batch = DataBatch();
    runtime->engine().WaitForAll();
    in_use[several] = runtime->storage().GetStats(Context::cpu()).in_use;
  }
  CHECK(in_use[1] >= in_use[0]);
  CHECK(static_cast<double>(in_use[1]) <= 1.05 * static_cast<double>(in_use[0]));
}

TEST_CASE("what batches of several lengths cannot be used with") {
  const auto runtime = NewRuntime("threaded", 2, 5);
  IdBatches train(*runtime, /*padded=*/false);
  TrainOptions options = BagOptions(2, 1);
  options.sync_batch_norm = true;
  CHECK_THROWS_WITH_AS(
      Trainer(*runtime, options, train, nullptr),
      doctest::Contains("batches of several sizes (data.bucket_lengths, train.multi_scale) cannot "
                        "be used with train.kvstore.sync_batch_norm"),
      Error);
}

}  // namespace
}  // namespace mxtrain::test
