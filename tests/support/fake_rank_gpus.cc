// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_rank_gpus.h"

#include <atomic>
#include <vector>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"
#include "mxtrain/device/rank_gpus.h"
#include "tests/support/fake_stream.h"
#include "tests/support/shared_sums.h"

namespace mxtrain::test {
namespace {

// All GPUs of a rank sum at once, each in a thread, for as long as the group has not failed.
class FakeRankCommunicator final : public Communicator {
 public:
  FakeRankCommunicator(std::span<const Context> devices, std::shared_ptr<ProcessGroup> group)
      : group_(std::move(group)) {
    std::vector<std::string> identities;
    for (const Context device : devices)
      identities.push_back(format("{} of rank {}", device.ToString(), group_->rank()));
    const RankGpus gpus = OrderGpus(*group_, identities);
    const std::string name =
        group_->BroadcastText(group_->first() ? SharedSums::NewName() : std::string());
    for (size_t d = 0; d < devices.size(); ++d) {
      members_.push_back(
          std::make_shared<SharedSums>(name, gpus.first + static_cast<int>(d), gpus.all));
    }
    group_->Barrier();
    watcher_ = std::thread([this] {
      while (!stopping_) {
        if (Overdue())
          group_->Fail("a sum over the GPUs of the test took longer than train.kvstore.timeout");
        if (group_->failed()) {
          for (const auto& member : members_) member->Abort();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  ~FakeRankCommunicator() override {
    if (ended_) ended_->Wait();
    stopping_ = true;
    watcher_.join();
  }

  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override {
    if (group_->failed()) Throw(kRankLost, "a rank of the test is lost");
    for (const auto& [type, data, n] : arrays) {
      Do(ctx, [this, members = members_, type = type, data = data, n = n] {
        sums_since_ns_ = SteadyNanoseconds();
        std::vector<std::thread> gpus;
        for (size_t d = 0; d < data.size(); ++d) {
          gpus.emplace_back([&, d] { members[d]->AllReduce(HostAddressOf(data[d]), n, type); });
        }
        for (std::thread& gpu : gpus) gpu.join();
        sums_since_ns_ = 0;
        MXTRAIN_ASSERT(!members[0]->mismatch());
      });
    }
    if (!ctx.stream) return;
    ended_ = ctx.stream->NewEvent();
    ctx.stream->Record(*ended_);
  }

 private:
  // As NcclGroup: a rank that has voted and ended leaves the others in a sum, which no vote covers.
  bool Overdue() const {
    const int64_t since = sums_since_ns_;
    return since > 0 &&
           static_cast<double>(SteadyNanoseconds() - since) > 1.1e9 * group_->timeout_seconds();
  }

  const std::shared_ptr<ProcessGroup> group_;
  std::vector<std::shared_ptr<SharedSums>> members_;
  std::unique_ptr<Event> ended_;
  std::atomic<int64_t> sums_since_ns_{0};  // of the sum that is under way
  std::atomic<bool> stopping_{false};
  std::thread watcher_;
};

}  // namespace

CommunicatorFactory FakeRankCommunicators(std::shared_ptr<ProcessGroup> group) {
  return [group = std::move(group)](std::span<const Context> devices) {
    return std::make_unique<FakeRankCommunicator>(devices, group);
  };
}

}  // namespace mxtrain::test
