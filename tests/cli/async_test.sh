#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training by processes that do not wait for each other: what they learn, slow ones, the staleness of updates, stops, resumed runs,
# refusals, and processes that are killed.
#   async_test.sh MPI     openmpi or mpich
. "$(dirname "$0")/common.sh"
. "$source_dir/tests/cli/ranks.sh" "$1"
sed -i 's/lr: 0.05/lr: 0.02/' net.yaml

# staleness RUN: of each epoch, how many updates there were, and the highest staleness.
staleness() {
  grep -o '"staleness":\[[0-9,]*\]' "$1/events.jsonl" | sed 's/.*\[//; s/\]//' | awk -F, '{ n = 0; for (i = 1; i <= NF; ++i) n += $i; print n, NF - 1 }'
}
# accuracy RUN: the last of validation.
accuracy() { awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i ~ /val.*accuracy/) c = i } END { print c ? $c : 0 }' "$1/metrics.csv"; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# Six arrays of parameters, 25 steps.
for n in 2 4; do
  ranks 0 $n train net.yaml --out apart$n -q --kvstore dist_async train.epochs=6
  holds "$n processes learn" at_least "$(accuracy apart$n)" 0.5
  holds "each update is counted once, and none is too stale" test "$(staleness apart$n | awk -v n=$n '$1 == 6 * 25 * n && $2 <= 4 * (n - 1)' | wc -l)" = 6
  expect 0 eval apart$n
done
ranks 0 4 train net.yaml --out close -q --kvstore dist_async train.kvstore.staleness=3
holds "the least bound is kept" test "$(staleness close | awk '$1 == 600 && $2 <= 3' | wc -l)" = 3
ranks 0 2 train net.yaml --out shown --kvstore dist_async
says "staleness "

# Any number of processes, with either store, and one alone continue a run.
ranks 0 4 train apart2/config.yaml --resume --out "$work/apart2" -q --kvstore dist_async train.epochs=7
ranks 0 2 train apart2/config.yaml --resume --out "$work/apart2" -q --kvstore dist_sync train.epochs=8
expect 0 train apart2/config.yaml --resume --out "$work/apart2" -q --threads 1 train.epochs=9
ranks 0 2 train apart2/config.yaml --resume --out "$work/apart2" -q --kvstore dist_async train.epochs=10
holds "a run goes on under both stores" at_least "$(accuracy apart2)" 0.5

# with_slow RUN ARGUMENT...: the last of four processes takes 0.3 s more for each of its 25 steps.
with_slow() {
  local run=$1
  shift
  local command=("$program" train net.yaml --out "$work/$run" -q --threads 1 train.epochs=1 train.report_every=1 "$@")
  checks=$((checks + 1))
  launch -n 3 "${command[@]}" : -n 1 env MXTRAIN_STEP_DELAY_MS=300 "${command[@]}" >stdout 2>stderr
  local code=$?
  last="a slow process, $*"
  [ $code -eq 0 ] || fail "$last: exit code $code, expected 0"
}
# speed RUN: the median of the speeds of all steps of rank 0.
speed() { grep '"event":"step"' "$1/events.jsonl" | grep -o '"images_per_second":[0-9.e+]*' | sed 's/.*://' | sort -g | sed -n 13p; }
with_slow in_step --kvstore dist_sync
with_slow apart --kvstore dist_async train.kvstore.staleness=75
says "rank 3 is slow: the others wait for it"
# 16 images take at least 0.3 s if all wait in each step.
holds "in step all are slow" at_least 54 "$(speed in_step)"
holds "apart, the others are not ($(speed apart) images/s)" at_least "$(speed apart)" 108
holds "no update is too stale" test "$(staleness apart | awk '$1 == 600 && $2 > 12 && $2 <= 75')"
with_slow bounded --kvstore dist_async train.kvstore.staleness=6
holds "a tighter bound is kept" test "$(staleness bounded | awk '$1 == 600 && $2 <= 6')"

# A process that is asked to stop stops all, with one save, at a place from which others continue.
stops_and_continues dist_async

# Refusals.
for key in kvstore.wire=bfloat16 kvstore.compression=2bit kvstore.shard_states=true kvstore.scale_lr=true kvstore.sync_batch_norm=true clip.norm=1 amp=fp16 ema.decay=0.9; do
  expect 3 train net.yaml --out refused -q --kvstore dist_async train.$key
  says "does not go with train.kvstore.type: dist_async"
  says "train.${key%%=*}"
done
ranks 2 2 train net.yaml --out refused -q --kvstore dist_async --deterministic
says "differ from run to run"
ranks 2 2 train net.yaml --out refused -q --kvstore dist_async --engine naive
says "engine naive does not go with train.kvstore.type: dist_async"
expect 3 train net.yaml --out refused -q train.kvstore.staleness=4
says "train.kvstore.staleness is for dist_async"
ranks 3 4 train net.yaml --out refused -q --kvstore dist_async train.kvstore.staleness=2
says "set at least 3"
holds "one process says it" test "$(grep -c 'set at least' stderr)" = 1
holds "nothing was written" test ! -e refused/checkpoints

# Processes on CPUs of different kinds may not continue a run, whose weights each of them would keep in another layout.
if grep -q avx2 /proc/cpuinfo; then
  sed 's/    - Flatten/    - Convolution: {num_filter: 32, kernel: 3}\n&/; s/num_filter: 4/num_filter: 32/' net.yaml >kinds.yaml
  ranks 0 2 train kinds.yaml --out kinds -q --kvstore dist_async train.epochs=1
  command=("$program" train kinds/config.yaml --resume --out "$work/kinds" -q --threads 1 train.epochs=2)
  checks=$((checks + 1))
  launch -n 1 "${command[@]}" : -n 1 env ONEDNN_MAX_CPU_ISA=SSE41 "${command[@]}" >stdout 2>stderr
  code=$?
  last="CPUs of two kinds"
  [ $code -eq 3 ] || fail "$last: exit code $code, expected 3"
  says "rank 1 has another layout of the weights"
fi

# A killed process ends all within ten seconds, and the run goes on from its last checkpoint.
launch -n 2 "$program" train net.yaml --out "$work/killed" -q --kvstore dist_async train.epochs=20000 --threads 1 >stdout 2>stderr &
launcher=$!
for i in $(seq 200); do [ -f killed/checkpoints/last ] && break; sleep 0.1; done
kill -KILL "$(newest killed)"
ranks_end killed "a process was killed"
ranks 0 2 train killed/config.yaml --resume --out "$work/killed" -q --kvstore dist_async train.epochs=$(($(grep -c '"event":"epoch"' killed/events.jsonl) + 2))

# One that does not answer is named by the others.
notices_silence 3 --kvstore dist_async data.batch_size=15 train.kvstore.timeout=3s

finish
