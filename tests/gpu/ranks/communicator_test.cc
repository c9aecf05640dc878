// SPDX-License-Identifier: Apache-2.0
// Communicators between ranks, which are threads here, over an NCCL that sums through shared
// memory: how they begin, sum, end and fail. training_test.cc has them as processes.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "mxtrain/base/error.h"
#include "tests/gpu/ranks/fake_nccl.h"
#include "tests/support/fake_stream.h"
#include "tests/support/thread_ranks.h"

namespace mxtrain::cuda {
namespace {

using namespace std::chrono_literals;
using Group = std::shared_ptr<ProcessGroup>;
using test::ErrorsOf;

// As the entry point of the CUDA backend makes it.
std::unique_ptr<NcclCommunicator> NewCommunicator(const Nccl& nccl, const Group& group, int gpus) {
  std::vector<std::string> identities;
  std::vector<Context> devices;
  std::vector<int> ids;
  for (int i = 0; i < gpus; ++i) {
    identities.push_back(format("GPU-{}-{}", group->rank(), i));
    devices.push_back(Context::gpu(i));
    ids.push_back(i);
  }
  const RankGpus order = OrderGpus(*group, identities);
  return std::make_unique<NcclCommunicator>(
      std::make_unique<NcclGroup>(nccl, ids, order, group, 5ms), devices, test::kFakeStreams);
}

// They begin in threads of their own.
int AwaitAborts(int expected) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (test::CountsOfFakeNccl().aborted < expected && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  return test::CountsOfFakeNccl().aborted;
}

void Wait(test::FakeStream& stream) {
  const auto event = stream.NewEvent();
  stream.Record(*event);
  event->Wait();
}

TEST_CASE("ranks with two GPUs and one sum over all three, and end in order") {
  const Nccl nccl = test::FakeNccl();
  test::RunRanks(2, [&](const Group& group) {
    const int gpus = group->first() ? 2 : 1;
    test::FakeStream stream(3, true);
    RunContext ctx;
    ctx.stream = &stream;
    const auto communicator = NewCommunicator(nccl, group, gpus);
    for (int step = 0; step < 20; ++step) {
      std::vector<std::vector<float>> small, large;
      ArrayOnEach few{DType::kFloat32, {}, 3}, many{DType::kFloat32, {}, 50000};
      for (int g = 0; g < gpus; ++g) {
        const auto place = static_cast<float>(2 * group->rank() + g);  // 0, 1 and 2
        small.emplace_back(3, place + static_cast<float>(step));
        large.emplace_back(50000, 10 * place);
      }
      for (int g = 0; g < gpus; ++g) {
        few.data.push_back(small[static_cast<size_t>(g)].data());
        many.data.push_back(large[static_cast<size_t>(g)].data());
      }
      const ArrayOnEach both[] = {few, many};
      communicator->AllReduce(ctx, both);
      Wait(stream);
      bool right = true;
      for (int g = 0; g < gpus; ++g) {
        for (float value : small[static_cast<size_t>(g)])
          right = right && value == static_cast<float>(3 + 3 * step);
        for (float value : large[static_cast<size_t>(g)]) right = right && value == 30;
      }
      CHECK(right);
    }
  });
  CHECK(test::CountsOfFakeNccl().communicators == 3);
  CHECK(test::CountsOfFakeNccl().destroyed == 3);
  CHECK(test::CountsOfFakeNccl().aborted == 0);
}

// The first saves at the end of a run.
TEST_CASE("a rank that ends later than the others is waited for, and fails no run") {
  const Nccl nccl = test::FakeNccl();
  for (const auto late : {300ms, 3000ms}) {
    CAPTURE(late.count());
    test::RunRanks(2,
                   [&](const Group& group) {
                     test::FakeStream stream;
                     RunContext ctx;
                     ctx.stream = &stream;
                     auto communicator = NewCommunicator(nccl, group, 1);
                     float value = 1;
                     const ArrayOnEach array{DType::kFloat32, {&value}, 1};
                     communicator->AllReduce(ctx, {&array, 1});
                     Wait(stream);
                     CHECK(value == 2);
                     if (group->first()) std::this_thread::sleep_for(late);
                     communicator.reset();
                     CHECK_FALSE(group->failed());
                   },
                   {.timeout_seconds = late < 1s ? 20.0 : 2.0});
    // Later than the timeout: not waited for.
    if (late < 1s) CHECK(test::CountsOfFakeNccl().destroyed == 2);
    if (late < 1s) CHECK(test::CountsOfFakeNccl().aborted == 0);
  }
  CHECK(AwaitAborts(1) >= 1);
}

TEST_CASE("the patience for the last sums is not that for a rank that ends later") {
  const Nccl nccl = test::FakeNccl();
  test::RunRanks(2, [&](const Group& group) {
    const std::vector<std::string> own{format("GPU-{}", group->rank())};
    NcclGroup gpus(nccl, {0}, OrderGpus(*group, own), group, 5ms);
    gpus.End(50ms, [] {});
    if (group->first()) std::this_thread::sleep_for(500ms);
  });
  CHECK(test::CountsOfFakeNccl().destroyed == 2);
  CHECK(test::CountsOfFakeNccl().aborted == 0);
}

// The fake finds different arrays; NCCL does not.
TEST_CASE("what NCCL finds on all ranks ends them all") {
  const Nccl nccl = test::FakeNccl();
  const auto errors = ErrorsOf(2, [&](const Group& group) {
    test::FakeStream stream;
    RunContext ctx;
    ctx.stream = &stream;
    const auto communicator = NewCommunicator(nccl, group, 1);
    std::array<float, 4> data{};
    const ArrayOnEach array{DType::kFloat32, {data.data()}, group->first() ? 4 : 3};
    communicator->AllReduce(ctx, {&array, 1});
    Wait(stream);
    communicator->AllReduce(ctx, {&array, 1});
    FAIL("the second sum must throw");
  });
  for (const std::string& error : errors)
    CHECK(error == "5: a sum over the GPUs failed: invalid usage");
  CHECK(AwaitAborts(2) == 2);
}

TEST_CASE("a rank that never comes to NCCL is noticed after the timeout") {
  const Nccl nccl = test::FakeNccl();
  std::promise<void> ended;
  const auto errors = ErrorsOf(2,
                               [&](const Group& group) {
                                 if (group->first()) {
                                   std::exception_ptr error;
                                   try {
                                     NewCommunicator(nccl, group, 1);
                                   } catch (...) {
                                     error = std::current_exception();
                                   }
                                   ended.set_value();
                                   std::rethrow_exception(error);
                                 }
                                 OrderGpus(*group, std::vector<std::string>{"GPU-1"});
                                 group->BroadcastText("");
                                 ended.get_future().wait_for(60s);
                               },
                               {.timeout_seconds = 1});
  CHECK(errors[0] ==
        "10: connecting the GPUs of all ranks has taken 1 s (train.kvstore.timeout): one of them "
        "ended or does not answer");
  CHECK(AwaitAborts(1) == 1);
}

// As between GPUs of one machine, where NCCL itself notices nothing: the group of processes does.
TEST_CASE("a sum that waits for a lost rank ends with the group of processes") {
  const Nccl nccl = test::FakeNccl();
  std::promise<void> ended;
  const auto errors = ErrorsOf(
      2,
      [&](const Group& group) {
        test::FakeStream stream;
        RunContext ctx;
        ctx.stream = &stream;
        const auto communicator = NewCommunicator(nccl, group, 1);
        if (!group->first()) {
          ended.get_future().wait_for(60s);
          return;
        }
        float value = 1;
        const ArrayOnEach array{DType::kFloat32, {&value}, 1};
        communicator->AllReduce(ctx, {&array, 1});
        CHECK_THROWS_WITH(group->Barrier(), doctest::Contains("rank 1 ended or does not answer"));
        Wait(stream);  // not for ever
        ended.set_value();
        communicator->AllReduce(ctx, {&array, 1});
      },
      {.timeout_seconds = 1});
  CHECK(errors[0] == "10: a sum over the GPUs of all ranks was ended: not all of them take part");
}

// After the last vote of an epoch no collective of the processes is in flight that would notice.
TEST_CASE("a sum that another rank never begins ends after the timeout") {
  const Nccl nccl = test::FakeNccl();
  std::promise<void> ended;
  const auto errors = ErrorsOf(2,
                               [&](const Group& group) {
                                 test::FakeStream stream;
                                 RunContext ctx;
                                 ctx.stream = &stream;
                                 const auto communicator = NewCommunicator(nccl, group, 1);
                                 float value = 1;
                                 const ArrayOnEach array{DType::kFloat32, {&value}, 1};
                                 for (int i = 0; i < 3; ++i)
                                   communicator->AllReduce(ctx, {&array, 1});
                                 Wait(stream);
                                 group->Barrier();
                                 if (!group->first()) {
                                   ended.get_future().wait_for(60s);
                                   return;
                                 }
                                 communicator->AllReduce(ctx, {&array, 1});
                                 Wait(stream);  // not for ever
                                 CHECK(group->failed());
                                 ended.set_value();
                                 communicator->AllReduce(ctx, {&array, 1});
                               },
                               {.timeout_seconds = 1});
  CHECK(errors[0] ==
        "10: a sum over the GPUs of all ranks has taken 1 s (train.kvstore.timeout): one of them "
        "ended or does not answer");
}

TEST_CASE("what NCCL finds on one rank ends its group before what it aborts can be seen") {
  const Nccl nccl = test::FakeNccl();
  const auto errors =
      ErrorsOf(2,
               [&](const Group& group) {
                 test::FakeStream stream;
                 RunContext ctx;
                 ctx.stream = &stream;
                 const auto communicator = NewCommunicator(nccl, group, 1);
                 float value = 1;
                 const ArrayOnEach array{DType::kFloat32, {&value}, 1};
                 communicator->AllReduce(ctx, {&array, 1});
                 Wait(stream);
                 group->Barrier();
                 if (group->first()) {
                   test::FailFakeNccl(0, ncclRemoteError);
                   while (!group->failed()) std::this_thread::sleep_for(1ms);
                   CHECK_THROWS_WITH(group->GatherText("a checkpoint follows"),
                                     "a sum over the GPUs failed: remote error");
                 } else {
                   communicator->AllReduce(ctx, {&array, 1});
                   CHECK_THROWS_AS(group->Barrier(), Error);  // the other takes part in nothing
                   Wait(stream);
                 }
                 communicator->AllReduce(ctx, {&array, 1});
               },
               {.timeout_seconds = 2});
  // NCCL knows that another rank is gone: the exit code says so.
  CHECK(errors[0] == "10: a sum over the GPUs failed: remote error");
  CHECK(errors[1] == "10: a sum over the GPUs of all ranks was ended: not all of them take part");
  CHECK(AwaitAborts(2) == 2);
}

TEST_CASE("a rank without NCCL's id ends all") {
  Nccl nccl = test::FakeNccl();
  nccl.GetUniqueId = [](ncclUniqueId*) { return ncclInvalidUsage; };
  const auto errors = ErrorsOf(2, [&](const Group& group) { NewCommunicator(nccl, group, 1); });
  CHECK(errors[0] == "5: ncclGetUniqueId failed: invalid usage");
  CHECK(errors[1] == "5: rank 0 could not begin with NCCL");
}

}  // namespace
}  // namespace mxtrain::cuda
