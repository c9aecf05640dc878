#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A discrete simulation of distributed steps: what would a step take with so many ranks over such a network?

  replay_trace.py TRACE LOG.0 [--ranks N]... [--link LATENCY_US,GBIT_PER_S]... [--compute FACTOR] [--fifo]

Replays one step of a recorded run, in which the network cost nothing:

  mpirun -n 2 --bind-to core env LD_PRELOAD=libmxtrain_slow_link_openmpi.so MXTRAIN_LINK=0,1000000 MXTRAIN_LINK_LOG=LOG mxtrain train ... --kvstore dist_sync \\
      --threads 1 train.max_steps=9 --profile TRACE

TRACE says how long each operation computes and in which order, LOG.0 how many bytes each sum has. The model:

  - A rank computes one operation at a time. Updates whose sums have arrived go first, the first layers' before others; else the next operation of the
    pass, in the recorded order; an operation of forward waits for the updates of its layer.
  - A sum leaves when backward has computed all of its bucket, after those before it in the order of sending: that of lib/mxtrain/kvstore/send_order.h,
    for this network, or with --fifo as they are complete.
  - The network is that of tests/cli/slow_link.cc: a sum occupies the link for its bytes and arrives some latencies later. All ranks are equally fast.

Prints, for each link, the time of a step in the steady state (seconds), that of its operations, and that of its bytes on the link. --compute multiplies
the time of every operation: 0.02 for a machine that is 50 times as fast as a core of the recorded one.
"""
import argparse
import collections
import heapq
import itertools
import json
import math
import statistics
import sys

Bucket = collections.namedtuple("Bucket", "bytes after keys")  # after: the place in the pass of the operation that completes it


class Step:
    """One recorded step: `ops` are (name, seconds) in order; `needs` has, by place, the keys of an operation of forward."""

    def __init__(self, trace, log):
        events = sorted(self.compute_events(trace), key=lambda e: e["ts"])
        heads = [i for i, e in enumerate(events) if e["name"] == events[self.first_forward(events)]["name"]]
        steps = [events[a:b] for a, b in zip(heads, heads[1:]) if any(self.is_update(e) for e in events[a:b])]
        step = sorted(steps, key=self.computed)[len(steps) // 2]
        sizes = self.sizes_of_step(log)
        self.ops, self.needs, self.updates, self.buckets = [], {}, {}, []
        layer_of_key, copied, backward, alone = {}, [], None, []
        for e in step:
            key = -e["args"].get("priority", 0)
            if self.is_update(e):
                self.updates[key] = e["dur"] / 1e6
            elif e["name"] == "all_reduce":
                alone.append((key, backward, len(self.ops) - 1))
            elif e["name"].startswith("NDArray::CopyFrom") and 0 <= key < 100000:
                copied.append((key, backward))
                self.ops.append((e["name"], e["dur"] / 1e6))
            else:
                if "_backward" in e["name"]:
                    backward = e["name"].split("_backward")[0]
                self.ops.append((e["name"], e["dur"] / 1e6))
        if len(alone) != len(sizes):
            sys.exit(f"the trace has {len(alone)} sums a step, the log {len(sizes)}")
        # A bucket of several keys has been copied into; the last of them is the one that the sum is named after.
        free = [key for key, _ in copied]
        layer_of_key.update(copied)
        for (key, layer, after), size in zip(alone, sizes):
            keys = [k for k in free if k >= key] if key in free else [key]
            free = [k for k in free if k not in keys]
            layer_of_key.setdefault(key, layer)
            self.buckets.append(Bucket(size, after, keys))
        places = {name: i for i, (name, _) in reversed(list(enumerate(self.ops)))}
        for key, layer in layer_of_key.items():
            self.needs.setdefault(places.get(layer, 0), []).append(key)
        missing = set(self.updates) ^ {k for b in self.buckets for k in b.keys}
        if missing:
            sys.exit(f"updates and sums of different keys: {sorted(missing)}")

    @staticmethod
    def compute_events(trace):
        with open(trace) as file:
            content = json.load(file)
        events = content["traceEvents"] if isinstance(content, dict) else content
        threads = {e["tid"]: e["args"]["name"] for e in events if e.get("ph") == "M" and e["name"] == "thread_name"}
        for e in events:
            if e.get("ph") == "X" and (threads[e["tid"]].startswith("cpu compute") or e["name"] == "all_reduce"):
                yield e

    @staticmethod
    def is_update(event):
        return event["name"].endswith("_update")

    @staticmethod
    def first_forward(events):
        last = max(i for i, e in enumerate(events) if "_backward" in e["name"])  # of the first layer
        first = events[last]["name"].split("_backward")[0]
        return next(i for i, e in enumerate(events) if e["name"] == first)

    @staticmethod
    def computed(step):
        return sum(e["dur"] for e in step if e["name"] != "all_reduce")

    @staticmethod
    def sizes_of_step(log):
        """Of the step before the last but one, in the order in which they were begun."""
        steps = [[]]
        with open(log) as file:
            rows = sorted((line.split() for line in file), key=lambda row: int(row[3]))
        for name, size, *_ in rows:
            if name == "all_reduce" and size == "16":  # the vote, which ends a step
                steps.append([])
            elif name == "all_reduce":
                steps[-1].append(int(size))
        return steps[-3]


def cost(size, ranks, latency, per_byte):
    """Of an all-reduce: seconds on the link, and of latency: a ring or recursive doubling."""
    others, rounds = ranks - 1, math.ceil(math.log2(ranks))
    ring = (2 * others / ranks * size * per_byte, 2 * others * latency)
    doubling = (rounds * size * per_byte, rounds * latency)
    return min(ring, doubling, key=sum)


def send_order(ready, transfer, first_key):
    """lib/mxtrain/kvstore/send_order.h"""
    left, now, order = set(range(len(ready))), -math.inf, []
    while left:
        there = [i for i in left if ready[i] <= now]
        i = min(there, key=lambda i: first_key[i]) if there else min(left, key=lambda i: ready[i])
        now = max(now, ready[i]) + transfer[i]
        order.append(i)
        left.remove(i)
    return order


def simulate(step, costs, compute, order, steps=6):
    """The time of each step, from the completion of one to that of the next, and when the buckets of the last were ready."""
    now, free, times, ready_at = 0.0, 0.0, [], []
    updated = set(step.updates)  # of the step before
    arriving, waiting = [], []   # (time, key) of sums; keys whose updates can run
    of_op = collections.defaultdict(list)
    for b, bucket in enumerate(step.buckets):
        of_op[bucket.after].append(b)

    def take_updates(until_done=()):
        nonlocal now
        while True:
            while arriving and arriving[0][0] <= now:
                heapq.heappush(waiting, heapq.heappop(arriving)[1])
            if waiting:
                key = heapq.heappop(waiting)
                now += step.updates[key] * compute
                updated.add(key)
            elif not all(key in updated for key in until_done):
                now = max(now, arriving[0][0])
            else:
                return

    for _ in range(steps):
        begun, ready, next_sent = now, {}, 0
        for place, (_, seconds) in enumerate(step.ops):
            take_updates(step.needs.get(place, ()))
            now += seconds * compute
            if place == len(step.ops) - 1 or of_op[place]:
                for b in of_op[place]:
                    ready[b] = now
                    updated.difference_update(step.buckets[b].keys)
                while next_sent < len(order) and order[next_sent] in ready:
                    b = order[next_sent]
                    next_sent += 1
                    free = max(free, ready[b]) + costs[b][0]
                    for key in step.buckets[b].keys:
                        heapq.heappush(arriving, (free + costs[b][1], key))
        times.append(now - begun)
        ready_at = [ready[b] for b in range(len(order))]
    return times, ready_at


def step_time(step, ranks, latency, per_byte, compute, fifo):
    costs = [cost(bucket.bytes, ranks, latency, per_byte) for bucket in step.buckets]
    order = sorted(range(len(costs)), key=lambda b: (step.buckets[b].after, b))
    times, ready = simulate(step, costs, compute, order)
    if not fifo:
        order = send_order(ready, [c[0] for c in costs], [min(bucket.keys) for bucket in step.buckets])
        times, _ = simulate(step, costs, compute, order)
    return statistics.mean(times[2:]), sum(c[0] for c in costs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("log")
    parser.add_argument("--ranks", type=int, action="append")
    parser.add_argument("--link", action="append", default=[])
    parser.add_argument("--compute", type=float, default=1)
    parser.add_argument("--fifo", action="store_true")
    options = parser.parse_args()
    step = Step(options.trace, options.log)
    computed = options.compute * (sum(seconds for _, seconds in step.ops) + sum(step.updates.values()))
    print(f"{len(step.ops)} operations, {len(step.updates)} updates, {len(step.buckets)} sums of {sum(b.bytes for b in step.buckets) / 1e6:.1f} MB")
    print("| ranks | latency, us | Gbit/s | step | operations | link | step / the longer |\n|---|---|---|---|---|---|---|")
    for ranks, link in itertools.product(options.ranks or [2], options.link):
        latency, gigabit = (float(x) for x in link.split(","))
        step_seconds, sent = step_time(step, ranks, latency * 1e-6, 8e-9 / gigabit, options.compute, options.fifo)
        print(f"| {ranks} | {latency:g} | {gigabit:g} | {step_seconds:.4f} | {computed:.4f} | {sent:.4f} | {step_seconds / max(computed, sent):.3f} |")


if __name__ == "__main__":
    main()
