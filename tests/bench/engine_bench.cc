// SPDX-License-Identifier: Apache-2.0
// The engine's overhead: a push of an empty function compared with a plain queue of closures in the
// same run, and an operation of a replayed sequence. Prints a table; with --json one JSON object.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "mxtrain/base/format.h"
#include "mxtrain/engine/engine.h"

namespace {

using namespace mxtrain;
using namespace mxtrain::engine;

constexpr int kPushes = 1'000'000;
constexpr int kVars = 1000;
constexpr int kSequenceOps = 500;
constexpr int kReplays = 400;
constexpr int kRounds = 7;

struct Triple {
  int reads[2];
  int write;
};

// Three different variables for each push, the same in every round.
std::vector<Triple> MakeTriples() {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any(0, kVars - 1);
  std::vector<Triple> triples(kPushes);
  for (Triple& triple : triples) {
    do {
      triple = {{any(random), any(random)}, any(random)};
    } while (triple.reads[0] == triple.reads[1] || triple.reads[0] == triple.write ||
             triple.reads[1] == triple.write);
  }
  return triples;
}

template <typename Body>
double NanosecondsPer(int count, Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
             .count() /
         count;
}

double TimePushes(const std::vector<Triple>& triples) {
  auto engine = Create();
  std::vector<VarHandle> vars(kVars);
  for (VarHandle& var : vars) var = engine->NewVar();
  engine->PushSync([](RunContext) {}, {}, {}, {});  // starts the worker
  engine->WaitForAll();
  return NanosecondsPer(kPushes, [&] {
    for (const Triple& triple : triples) {
      const VarHandle reads[] = {vars[triple.reads[0]], vars[triple.reads[1]]};
      const VarHandle writes[] = {vars[triple.write]};
      engine->PushSync([](RunContext) {}, reads, writes, {});
    }
    engine->WaitForAll();
  });
}

// The minimum cost of any engine with a queue: closures passed through a mutex and a condition
// variable to one thread, without dependencies.
double TimeBareQueue() {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool done = false;
  std::thread worker([&] {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return !queue.empty() || done; });
      if (queue.empty()) return;
      std::function<void()> fn = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      fn();
      lock.lock();
    }
  });
  return NanosecondsPer(kPushes, [&] {
    for (int i = 0; i < kPushes; ++i) {
      {
        std::lock_guard lock(mutex);
        queue.emplace_back([] {});
      }
      changed.notify_one();
    }
    {
      std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_one();
    worker.join();
  });
}

// A step like a network's: each operation follows the one before and one further back; a tenth of
// them name a port.
double TimeReplay() {
  auto engine = Create();
  std::vector<SequenceOp> ops(kSequenceOps);
  std::vector<VarHandle> ports(kSequenceOps / 10);
  for (VarHandle& port : ports) port = engine->NewVar();
  for (int i = 0; i < kSequenceOps; ++i) {
    ops[i].name = "op";
    ops[i].fn = [](RunContext) {};
    if (i > 0) ops[i].after.push_back(i - 1);
    if (i > 3) ops[i].after.push_back(i - 4);
    if (i % 10 == 0) ops[i].writes.push_back(i / 10);
  }
  SequenceHandle sequence = engine->NewSequence(std::move(ops), static_cast<int>(ports.size()));
  engine->Push(sequence, ports);
  engine->WaitForAll();
  const double time = NanosecondsPer(kSequenceOps * kReplays, [&] {
    for (int i = 0; i < kReplays; ++i) engine->Push(sequence, ports);
    engine->WaitForAll();
  });
  engine->DeleteSequence(sequence);
  return time;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  if (argc > (json ? 2 : 1)) {
    std::fprintf(stderr, "usage: engine_bench [--json]\n");
    return 2;
  }
  const std::vector<Triple> triples = MakeTriples();
  std::vector<double> pushes, queue, replay;
  for (int round = 0; round < kRounds; ++round) {
    pushes.push_back(TimePushes(triples));
    queue.push_back(TimeBareQueue());
    replay.push_back(TimeReplay());
  }
  const double push_ns = Median(pushes), queue_ns = Median(queue), replay_ns = Median(replay);
  if (json) {
    std::puts(
        format(
            R"({{"push_ns": {:.1f}, "bare_queue_ns": {:.1f}, "push_to_queue_ratio": {:.3f}, "replayed_operation_ns": {:.1f}}})",
            push_ns, queue_ns, push_ns / queue_ns, replay_ns)
            .c_str());
    return 0;
  }
  std::puts(
      format("median of {} rounds, one worker, {} pushes of an empty function (2 reads, 1 write of "
             "{} variables)\n"
             "  push to end of WaitForAll   {:8.1f} ns a push\n"
             "  bare mutex and queue        {:8.1f} ns a push   (ratio {:.2f})\n"
             "  replayed sequence           {:8.1f} ns an operation ({} operations, {} replays)",
             kRounds, kPushes, kVars, push_ns, queue_ns, push_ns / queue_ns, replay_ns,
             kSequenceOps, kReplays)
          .c_str());
  return 0;
}
