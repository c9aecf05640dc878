// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/process_group.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include "tests/support/thread_ranks.h"

namespace mxtrain {
namespace {

using Kind = Collective::Kind;
using test::RunRanks;
using test::ThreadRanks;

TEST_CASE("collectives give every rank the same values") {
  for (int size : {1, 2, 5}) {
    RunRanks(size, [size](const std::shared_ptr<ProcessGroup>& group) {
      const int rank = group->rank();
      REQUIRE(group->size() == size);
      std::vector<float> sum(1000, static_cast<float>(rank + 1));
      group->Run({.data = sum.data(), .n = 1000});
      CHECK(sum == std::vector<float>(1000, static_cast<float>(size * (size + 1) / 2)));
      int64_t most = rank;
      group->Run(
          {.data = &most, .n = 1, .type = DType::kInt64, .reduction = Collective::Reduction::kMax});
      CHECK(most == size - 1);
      double first = rank + 0.5;
      group->Run({.kind = Kind::kBroadcast, .data = &first, .n = 1, .type = DType::kFloat64});
      CHECK(first == 0.5);
      CHECK(group->BroadcastText(rank == 0 ? "from the first" : "x") == "from the first");
      const std::vector<std::string> texts =
          group->GatherText(std::string(static_cast<size_t>(rank) * 100, 'a'));
      REQUIRE(texts.size() == static_cast<size_t>(size));
      for (int r = 0; r < size; ++r)
        CHECK(texts[static_cast<size_t>(r)] == std::string(static_cast<size_t>(r) * 100, 'a'));
      group->Barrier();
    });
  }
}

TEST_CASE("collectives begin in the order of their places, whatever the order of their starts") {
  static constexpr int kCollectives = 200;
  RunRanks(3, [](const std::shared_ptr<ProcessGroup>& group) {
    std::vector<ProcessGroup::Place> places;
    for (int i = 0; i < kCollectives; ++i) places.push_back(group->Reserve());
    std::vector<int> order(kCollectives);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(),
                 std::mt19937(static_cast<unsigned>(17 + group->rank())));
    std::vector<float> values(kCollectives);
    std::iota(values.begin(), values.end(), 0.0f);
    std::atomic<int> done{0};
    for (int i : order) {
      group->Start(std::move(places[static_cast<size_t>(i)]),
                   {.data = &values[static_cast<size_t>(i)], .n = 1},
                   [&done](std::exception_ptr error) {
                     CHECK(!error);
                     ++done;
                   });
    }
    group->Barrier();
    CHECK(done == kCollectives);
    for (int i = 0; i < kCollectives; ++i)
      CHECK(values[static_cast<size_t>(i)] == 3.0f * static_cast<float>(i));
    CHECK(group->stats().collectives >= kCollectives);
  });
}

struct Outcome {
  std::string text;
  int kind = 0;
};

Outcome OutcomeOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return {e.what(), static_cast<int>(e.kind())};
  }
  return {};
}

TEST_CASE("a rank that does not answer is an error after the timeout, and every later collective") {
  ThreadRanks ranks(2);
  ranks.Lose(1);
  ProcessGroup group(ranks.Opener(0), {.timeout_seconds = 0.2});
  const Outcome first = OutcomeOf([&] { group.Barrier(); });
  CHECK(first.kind == 10);
  CHECK(first.text.find("train.kvstore.timeout") != std::string::npos);
  CHECK(OutcomeOf([&] { group.Barrier(); }).kind == 10);
  CHECK(group.failed());
  group.Abort(10);
  CHECK(ranks.aborted_with() == 10);
}

TEST_CASE("ranks that wait name those that do not") {
  ThreadRanks ranks(5);
  std::vector<Outcome> outcomes(5);
  std::vector<std::thread> threads;
  for (int r : {0, 2, 4}) {
    threads.emplace_back([&, r] {
      ProcessGroup group(ranks.Opener(r), {.timeout_seconds = 4});
      outcomes[static_cast<size_t>(r)] = OutcomeOf([&] { group.Barrier(); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t r : {0, 2, 4}) {
    CHECK(outcomes[r].kind == 10);
    CHECK(outcomes[r].text.find("ranks 1 and 3 ended or do not answer") != std::string::npos);
  }
}

TEST_CASE("a process that the others never join is an error after the timeout") {
  ThreadRanks ranks(1);
  std::promise<void> come;
  const std::shared_future<void> comes = come.get_future().share();
  const auto left = std::make_shared<std::promise<void>>();
  const auto open = [&ranks, comes, left] {
    comes.wait();
    auto transport = ranks.Opener(0)();
    left->set_value();
    return transport;
  };
  std::atomic<int> stop{0};
  Outcome outcome;
  SUBCASE("") {
    outcome = OutcomeOf([&] { ProcessGroup(open, {.timeout_seconds = 0.1}); });
    CHECK(outcome.text.find("train.kvstore.timeout") != std::string::npos);
  }
  SUBCASE("at the end that it is asked for") {
    stop = 1;
    outcome = OutcomeOf([&] { ProcessGroup(open, {.stop = &stop, .stop_seconds = 0.1}); });
    CHECK(outcome.text.find("asked to end") != std::string::npos);
  }
  CHECK(outcome.kind == 10);
  come.set_value();  // the lane that was left behind ends without the group
  left->get_future().wait();
}

TEST_CASE("a process that is asked to end waits only briefly for ranks that do not answer") {
  ThreadRanks ranks(2);
  ranks.Lose(1);
  std::atomic<int> stop{0};
  ProcessGroup group(ranks.Opener(0), {.timeout_seconds = 600, .stop = &stop, .stop_seconds = 0.1});
  std::thread signal([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = 1;
  });
  const Outcome outcome = OutcomeOf([&] { group.Barrier(); });
  signal.join();
  CHECK(outcome.kind == 10);
  CHECK(outcome.text.find("asked to end") != std::string::npos);
}

TEST_CASE("what is reserved and not started does not keep a failed rank waiting") {
  ThreadRanks ranks(2);
  ProcessGroup group(ranks.Opener(0), {});
  const ProcessGroup::Place never = group.Reserve();
  std::atomic<int> failed{0};
  float value = 1;
  group.Start(group.Reserve(), {.data = &value, .n = 1},
              [&failed](std::exception_ptr error) { failed += error ? 1 : 0; });
  group.Fail("this rank ended with an error: no disk");
  CHECK(OutcomeOf([&] { group.Barrier(); }).text.find("no disk") != std::string::npos);
  group.Abort(8);
  CHECK(failed == 1);
}

TEST_CASE("a place that is dropped without a start fails what would wait for it") {
  ThreadRanks ranks(2);
  ProcessGroup group(ranks.Opener(0), {});
  std::atomic<int> failed{0};
  float value = 1;
  {
    const ProcessGroup::Place never = group.Reserve();
    group.Start(group.Reserve(), {.data = &value, .n = 1},
                [&failed](std::exception_ptr error) { failed += error ? 1 : 0; });
    CHECK_FALSE(group.failed());
  }
  CHECK(OutcomeOf([&] { group.Barrier(); }).text.find("could not compute") != std::string::npos);
  group.Abort(8);
  CHECK(failed == 1);
}

TEST_CASE("what a failed rank had in flight reaches no other rank") {
  ThreadRanks ranks(2);
  ProcessGroup failing(ranks.Opener(0), {}), other(ranks.Opener(1), {.timeout_seconds = 0.2});
  std::atomic<int> failed{0};
  auto value = std::make_unique<float>(1);
  failing.Start(failing.Reserve(), {.data = value.get(), .n = 1},
                [&failed](std::exception_ptr error) { failed += error ? 1 : 0; });
  while (failing.stats().collectives == 0) std::this_thread::yield();
  failing.Fail("no disk");
  while (failed == 0) std::this_thread::yield();
  value.reset();
  float own = 2;
  CHECK(OutcomeOf([&] { other.Run({.data = &own, .n = 1}); }).kind == 10);
  CHECK(own == 2);
  failing.Abort(8);
  other.Abort(8);
}

TEST_CASE("messages of one tag arrive in their order, beside collectives that wait") {
  static constexpr int kMessages = 100;
  RunRanks(3, [](const std::shared_ptr<ProcessGroup>& group) {
    const int rank = group->rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    std::vector<std::vector<int>> sent, received(2 * kMessages);
    std::atomic<int> done{0};
    const auto count = [&done](const std::exception_ptr& error) {
      CHECK(!error);
      ++done;
    };
    for (int i = 0; i < 2 * kMessages; ++i)
      sent.emplace_back(static_cast<size_t>(i % 5 + 1), rank * 1000 + i);
    // A collective that begins late keeps no message waiting.
    ProcessGroup::Place late = group->Reserve();
    for (int i = 0; i < 2 * kMessages; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto bytes = static_cast<int64_t>(sent[at].size() * sizeof(int));
      received[at].resize(sent[at].size());
      group->Start({Message::Kind::kReceive, before, i % 2, received[at].data(), bytes}, count);
      group->Start({Message::Kind::kSend, next, i % 2, sent[at].data(), bytes}, count);
    }
    while (done < 4 * kMessages) std::this_thread::yield();
    for (int i = 0; i < 2 * kMessages; ++i)
      CHECK(received[static_cast<size_t>(i)] ==
            std::vector<int>(static_cast<size_t>(i % 5 + 1), before * 1000 + i));
    // A receive that nothing answers.
    int nothing = 0;
    bool called = false;
    const Message unanswered{Message::Kind::kReceive, before, 7, &nothing, sizeof nothing, false};
    group->Start(unanswered, [&called](const std::exception_ptr&) { called = true; });
    group->DropReceives();
    CHECK_FALSE(called);
    const auto kept = std::make_shared<int>(0);  // dropped by Close
    group->Start({Message::Kind::kReceive, before, 7, kept.get(), sizeof *kept, false},
                 [kept](const std::exception_ptr&) { FAIL("a receive was answered"); });
    float value = 1;
    std::promise<void> summed;
    group->Start(std::move(late), {.data = &value, .n = 1},
                 [&summed](const std::exception_ptr&) { summed.set_value(); });
    summed.get_future().wait();
    CHECK(value == 3);
  });
}

TEST_CASE("a message that is awaited has its time, and one that is not has more") {
  ThreadRanks ranks(2);
  ranks.Lose(1);
  ProcessGroup group(ranks.Opener(0), {.timeout_seconds = 0.2});
  int data = 0;
  std::promise<std::exception_ptr> first, second;
  group.Start({Message::Kind::kReceive, 1, 0, &data, sizeof data, false},
              [&first](std::exception_ptr error) { first.set_value(std::move(error)); });
  std::future<std::exception_ptr> patient = first.get_future();
  CHECK(patient.wait_for(std::chrono::milliseconds(500)) == std::future_status::timeout);
  int other = 0;
  group.Start({Message::Kind::kReceive, 1, 1, &other, sizeof other},
              [&second](std::exception_ptr error) { second.set_value(std::move(error)); });
  const Outcome outcome = OutcomeOf([&] {
    if (std::exception_ptr error = second.get_future().get()) std::rethrow_exception(error);
  });
  CHECK(outcome.kind == 10);
  CHECK(outcome.text.find("rank 1 ended or does not answer") != std::string::npos);
  CHECK(patient.get() != nullptr);  // all fail with the first
  group.Abort(10);
}

TEST_CASE("an error of the transport's start is thrown by the constructor") {
  CHECK_THROWS_WITH(
      ProcessGroup([]() -> std::unique_ptr<Transport> { Throw(ErrorKind::kDevice, "no MPI here"); },
                   {}),
      "no MPI here");
}

TEST_CASE("a link in front of a transport takes its time and changes no value") {
  ThreadRanks ranks(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&ranks, r] {
      ProcessGroup group(
          [open = ranks.Opener(r)] {
            return test::Delayed(open(), {.latency_seconds = 0.01, .bytes_per_second = 4e5});
          },
          {});
      const auto begin = std::chrono::steady_clock::now();
      std::vector<float> data(1000, 1);  // 10 ms on the link
      group.Run({.data = data.data(), .n = 1000});
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      CHECK(seconds.count() >= 0.02);
      CHECK(data == std::vector<float>(1000, 2));
      group.Close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mxtrain
