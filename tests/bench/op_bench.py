#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators beside PyTorch's. op_bench and PyTorch take turns, case by case, with equally many threads.

  op_bench.py [--program PATH] [--filter REGEX] [--size small|medium|large] [--rounds N] [--threads N] [--time best|median]
              [--allocator tuned|default] [--output FILE]

Run it by an interpreter that has torch (pip install torch numpy). Needs no other load on the machine. Prints a table: microseconds of either,
PyTorch's over ours, and how many GB/s of arrays ours reads and writes; then the median of the ratios, and the cases under 0.9. A time is the
median of the rounds' times, each the best (or the median) call of its round; a ratio is the median of the rounds' ratios. Cases without a
counterpart show ours alone.

Our arrays are allocated once; PyTorch allocates its results at each call. By default glibc keeps that memory, as in PyTorch at its best;
`--allocator default` leaves glibc as it is.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from rivals import ALLOCATORS, ROOT

TUNED = ALLOCATORS["tuned"]
LOW = 0.9  # ratios below it are listed
CLEAR = "\r\033[K" if sys.stderr.isatty() else ""  # of the line of progress


def lines_of(args, more, notes):
    """The JSON lines that op_bench prints. `notes`: whether its notes are shown."""
    environment = {key: value for key, value in os.environ.items() if key not in TUNED}
    done = subprocess.run([args.program, *more], env=environment, stdout=subprocess.PIPE, stderr=None if notes else subprocess.DEVNULL, text=True,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Row:
    """A pass of a case."""

    def __init__(self, line):
        self.names = (line["case"], line["size"], line["pass"])
        self.kernel = line["kernel"] if line["layout"] == "plain" else f"{line['kernel']}, {line['layout']}"
        self.bytes = line["bytes"]
        self.ours, self.torch = [], []  # nanoseconds, by round

    def ratio(self):
        """PyTorch's time over ours; None without a counterpart."""
        if not self.torch:
            return None
        return statistics.median(theirs / ours for ours, theirs in zip(self.ours, self.torch))

    def cells(self):
        ours = statistics.median(self.ours)
        ratio = self.ratio()
        theirs = [f"{statistics.median(self.torch) / 1000:.2f}", f"{ratio:.2f}"] if ratio else ["", ""]
        return [*self.names, self.kernel, f"{ours / 1000:.2f}", *theirs, f"{self.bytes / ours:.1f}"]


def torch_time(args, case, which, notes):
    """Nanoseconds; None without a counterpart, or if that fails."""
    import op_bench_torch
    try:
        found = op_bench_torch.times(case, which)
    except (RuntimeError, TypeError, ValueError) as error:
        if notes:
            print(f"op_bench.py: {case['case']}, {case['size']}, {which}: PyTorch: {error}", file=sys.stderr)
        return None
    return found and found[0 if args.time == "best" else 1]


def run_round(args, cases, rows, notes):
    for number, case in enumerate(cases):
        if CLEAR:
            print(f"{CLEAR}{number + 1} of {len(cases)}: {case['case']}, {case['size']}", end="", file=sys.stderr, flush=True)
        only = ["--filter", f"^{case['case']}$", "--size", case["size"], "--threads", str(args.threads)]
        for line in lines_of(args, only, notes):
            row = rows.setdefault((line["case"], line["size"], line["pass"]), Row(line))
            row.ours.append(line[f"ns_{args.time}"])
            theirs = torch_time(args, case, line["pass"], notes)
            if theirs:
                row.torch.append(theirs)


def print_table(rows, out):
    print("| case | size | pass | kernel | ours, us | torch, us | torch / ours | GB/s |\n|---|---|---|---|---|---|---|---|", file=out)
    for row in rows:
        print("| " + " | ".join(row.cells()) + " |", file=out)


def print_summary(rows, out):
    compared = [row for row in rows if row.ratio()]
    if not compared:
        return
    print(f"\nmedian of torch / ours: {statistics.median(row.ratio() for row in compared):.2f} of {len(compared)} rows", file=out)
    for group in sorted({row.names[1:] for row in compared}):
        ratios = [row.ratio() for row in compared if row.names[1:] == group]
        print(f"  {', '.join(group)}: {statistics.median(ratios):.2f} of {len(ratios)}", file=out)
    low = sorted((row for row in compared if row.ratio() < LOW), key=Row.ratio)
    print(f"\nunder {LOW}: {len(low)}", file=out)
    for row in low:
        print(f"  {row.ratio():.2f} {', '.join(row.names)}", file=out)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/op_bench"))
    parser.add_argument("--filter", default="", help="of the names of cases")
    parser.add_argument("--size", choices=["small", "medium", "large"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--time", choices=["best", "median"], default="best", help="of the calls of a round")
    parser.add_argument("--allocator", choices=["tuned", "default"], default="tuned", help="of PyTorch's memory")
    parser.add_argument("--output", help="a file for the table, instead of stdout")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.allocator == "tuned" and any(os.environ.get(key) != value for key, value in TUNED.items()):
        # glibc reads its settings at the start of a process.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **TUNED})
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    cases = lines_of(args, ["--list", "--filter", args.filter, *(["--size", args.size] if args.size else [])], True)
    rows = {}
    out = open(args.output, "w", encoding="utf-8") if args.output else sys.stdout
    for number in range(args.rounds):
        run_round(args, cases, rows, number == 0)
        print(f"{CLEAR}round {number + 1} of {args.rounds} is done", file=sys.stderr)
    print(f"torch {torch.__version__}, {args.threads} threads, {args.rounds} rounds, allocator {args.allocator}\n", file=out)
    print_table(list(rows.values()), out)
    print_summary(list(rows.values()), out)


if __name__ == "__main__":
    main()
