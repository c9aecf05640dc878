// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/internal/data_wait.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

// Each batch takes as long as its function.
class Slow final : public DataIter {
 public:
  explicit Slow(std::function<void()> next) : next_(std::move(next)) {}
  std::vector<DataDesc> provide_data() const override { return {}; }
  std::vector<DataDesc> provide_label() const override { return {}; }
  int64_t batch_size() const override { return 1; }
  int64_t batches_per_epoch() const override { return 1; }
  int64_t examples() const override { return 1; }
  std::string ExampleName(int64_t) const override { return ""; }
  void Reset(int64_t, int64_t) override {}
  bool Next(DataBatch*) override {
    next_();
    return true;
  }
  Stats stats() const override { return {}; }

 private:
  const std::function<void()> next_;
};

TEST_CASE("a wait counts only while no batch is in flight") {
  double now = 100;
  DataWait wait([&now] { return now; });
  DataBatch batch;
  const auto next = [&](const std::function<void()>& meanwhile) {
    const double before = wait.seconds();
    Slow iter(meanwhile);
    CHECK(wait.Next(iter, &batch));
    return wait.seconds() - before;
  };
  const auto pass = [&now](double seconds) { return [&now, seconds] { now += seconds; }; };

  CHECK(next(pass(3)) == 3);  // before the first batch
  wait.Pushed();
  CHECK(next(pass(5)) == 0);  // the device works on the first
  wait.Pushed();
  CHECK(next([&] {
          now += 2;
          wait.Done();  // the first; the second is in flight
          now += 4;
        }) == 0);
  CHECK(next([&] {
          now += 2;
          wait.Done();  // the last one
          now += 7;
        }) == 7);
  now += 50;                  // an evaluation
  CHECK(next(pass(0)) == 0);  // the batch was there
  CHECK(next(pass(1)) == 1);
  wait.Pushed();
  wait.Done();
  now += 2;  // between the end and the call
  CHECK(next(pass(4)) == 4);
  CHECK(wait.seconds() == 3 + 7 + 1 + 4);
}

TEST_CASE("exceptions from Next pass through") {
  DataWait wait;
  Slow broken([] { Throw(ErrorKind::kData, "no more"); });
  DataBatch batch;
  CHECK_THROWS_WITH(wait.Next(broken, &batch), "no more");
}

}  // namespace
}  // namespace mxtrain
