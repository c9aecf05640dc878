#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training by several processes that mpirun starts: the same losses as one process, the same checkpoint as with as many workers, stops,
# resumed runs, refusals, and ranks that are killed.
#   distributed_test.sh MPI [KILLS]     openmpi or mpich; default 5 kills
. "$(dirname "$0")/common.sh"
. "$source_dir/tests/cli/ranks.sh" "$1"
kills=${2:-5}
# The same with batch norm and Dropout, whose results depend on how a batch is divided.
sed -e 's/    - Flatten/    - BatchNorm\n    - Flatten\n    - Dropout: {p: 0.3}/' net.yaml >norm.yaml

# close A B [BOUND]: the losses and metrics of two runs' epochs agree within BOUND (default 1e-4) of their size.
close() {
  paste -d, <(cut -d, -f2- "$1/metrics.csv") <(cut -d, -f2- "$2/metrics.csv") | awk -F, -v bound="${3:-1e-4}" '
    NR == 1 { n = NF / 2; for (i = 1; i <= n; ++i) if ($i ~ /loss|accuracy|entropy/) column[i] = $i; next }
    { for (i in column) { d = $i - $(i + n); if (d < 0) d = -d; seen++; if (d > bound * ($i > 1 ? $i : 1)) { print column[i], $i, $(i + n); bad = 1 } } }
    END { exit bad || seen < 6 }'
}

expect 0 train net.yaml --out one -q --threads 1
for n in 2 4; do
  ranks 0 $n train net.yaml --out many$n -q --kvstore dist_sync
  holds "$n processes have the losses of one" close one many$n
done
# Counts are the same to the last digit.
accuracies() { awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i ~ /accuracy/) column[++n] = i; next } { for (k = 1; k <= n; ++k) print $column[k] }' "$1/metrics.csv"; }
holds "there are accuracies of training and validation" test "$(accuracies one | wc -l)" = 6
for n in 2 4; do holds "the accuracies of $n processes are those of one" test "$(accuracies one)" = "$(accuracies many$n)"; done
expect 0 eval many2
ranks 0 2 eval many2
says "each does all of this"

# Batch norm per process and Dropout: the bits of as many workers of one process.
expect 0 train norm.yaml --out workers2 -q --threads 1 train.kvstore.workers=2
ranks 0 2 train norm.yaml --out norm2 -q --kvstore dist_sync
holds "2 processes give the bits of 2 workers" "$helper" compare workers2/checkpoints/last norm2/checkpoints/last
ranks 0 2 train norm.yaml --out again2 -q --kvstore dist_sync
holds "the bits are the same in every run" "$helper" compare again2/checkpoints/last norm2/checkpoints/last

# Batch norm over all processes: the losses of one process; and the bits of 2 workers.
sed -e '0,/    - Activation/s//    - BatchNorm: {fix_gamma: false}\n    - Activation/' net.yaml >sync.yaml
expect 0 train sync.yaml --out sync1 -q --threads 1
expect 0 train sync.yaml --out sync_workers -q --threads 1 train.kvstore.sync_batch_norm=true train.kvstore.workers=2
holds "2 workers with synchronised batch norm have the losses of one" close sync1 sync_workers
for n in 2 4; do
  ranks 0 $n train sync.yaml --out sync$n -q --kvstore dist_sync train.kvstore.sync_batch_norm=true
  holds "$n processes with synchronised batch norm have the losses of one" close sync1 sync$n
done
holds "2 processes with synchronised batch norm give the bits of 2 workers" "$helper" compare sync_workers/checkpoints/last sync2/checkpoints/last
ranks 0 2 train sync.yaml --out apart2 -q --kvstore dist_sync
checks=$((checks + 1))
close sync1 apart2 >/dev/null && fail "without it, 2 processes have other losses"

# The batch of each process, and the learning rate that goes with it.
expect 0 train net.yaml --out big -q --threads 1 data.batch_size=32 train.optimizer.lr=0.1
ranks 0 2 train net.yaml --out per_rank -q --kvstore dist_sync train.kvstore.batch=per_rank train.kvstore.scale_lr=true
holds "batch: per_rank is a larger batch" close big per_rank

# Gradients in bfloat16, sharded states, compressed gradients.
ranks 0 2 train net.yaml --out rounded -q --kvstore dist_sync train.kvstore.wire=bfloat16
holds "gradients in bfloat16 give nearly the losses of float32" close one rounded 0.02
checks=$((checks + 1))
"$helper" compare many2/checkpoints/last rounded/checkpoints/last >/dev/null && fail "gradients in bfloat16 have the bits of float32"
for n in 2 4; do
  ranks 0 $n train net.yaml --out sharded$n -q --kvstore dist_sync train.kvstore.shard_states=true
  ranks 0 $n train net.yaml --out whole$n -q --kvstore dist_sync
  holds "sharded states of $n processes give the bits of whole ones" "$helper" compare whole$n/checkpoints/last sharded$n/checkpoints/last
done
ranks 0 4 train sharded2/config.yaml --resume --out "$work/sharded2" -q --kvstore dist_sync train.epochs=4
expect 0 train sharded2/config.yaml --resume --out "$work/sharded2" -q --threads 1 train.epochs=5
compressed=(--kvstore dist_sync 'train.kvstore.compression={type: 2bit, threshold: 0.5}')
ranks 0 2 train net.yaml --out packed -q "${compressed[@]}" train.epochs=6
holds "a run with compressed gradients learns" awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i ~ /val.*accuracy/) c = i } END { exit !(c && $c > 0.5) }' packed/metrics.csv
ranks 0 2 train net.yaml --out halves -q "${compressed[@]}" train.epochs=6 train.max_steps=40
ranks 0 2 train halves/config.yaml --resume --out "$work/halves" -q "${compressed[@]}" train.epochs=6 train.max_steps=0
holds "it resumes to the bits of an undisturbed one" "$helper" compare packed/checkpoints/last halves/checkpoints/last
ranks 0 4 train packed/config.yaml --resume --out "$work/packed" -q "${compressed[@]}" train.epochs=7
says "they restart at zero"

# Over a slow network (slow_link.cc), which makes what the next pass needs first overtake the rest: the same bits.
sed -e 's/^    - FullyConnected: {num_hidden: 16}$/    - FullyConnected: {num_hidden: 512}\n    - FullyConnected: {num_hidden: 512}\n    - FullyConnected: {num_hidden: 512}/' net.yaml >wide.yaml
ranks 0 2 train wide.yaml --out wide -q --kvstore dist_sync train.epochs=1
launch -n 2 env LD_PRELOAD="$(dirname "$program")/../lib/libmxtrain_slow_link_$mpi.so" MXTRAIN_LINK=300,0.2 MXTRAIN_LINK_LOG="$work/link" \
  "$program" train wide.yaml --out far -q --kvstore dist_sync --threads 1 train.epochs=1 >stdout 2>stderr || fail "a run over a slow network: exit code $?"
holds "a slow network does not change the bits" "$helper" compare wide/checkpoints/last far/checkpoints/last
holds "nothing arrives before its latency" awk '$6 - $5 < 300000 { early = 1 } END { exit early || NR < 100 }' link.0
# sizes STEP: what travels between two votes, in its order.
sizes() { awk -v step="$1" '$1 == "all_reduce" && $2 == 16 { ++votes; next } votes == step { print $2 }' link.0; }
holds "at first the last layers' gradients leave first" test "$(sizes 2 | tail -n 1)" -lt 1000000
holds "then they wait for those of the first layers" test "$(sizes 20 | tail -n 1)" -gt 1000000

# One console, one log per process.
ranks 0 2 train net.yaml --out shown --kvstore dist_sync
holds "one process reports" test "$(grep -c 'run folder:' stderr)" = 1
holds "every process has a log" test -s shown/mxtrain.rank1.log

# A rank that is asked to stop stops all after the step, with one save; --resume continues, also with another number of processes.
stops_and_continues dist_sync

# USR1 to one rank saves, and the run goes on, also if a rank then sleeps for longer than a stop may take.
# A learning rate that changes nothing: no epoch after the first is better, and saved for that.
launch -n 2 "$program" train net.yaml --out "$work/saved" -q --kvstore dist_sync train.epochs=600 train.save.every=600 train.optimizer.lr=1e-30 \
  --threads 1 >stdout 2>stderr &
launcher=$!
for i in $(seq 200); do [ "0$(grep -sc '"event":"epoch"' saved/events.jsonl)" -ge 2 ] && break; sleep 0.1; done
one=$(newest saved)
saves_before=$(grep -c '"event":"save"' saved/events.jsonl)
kill -USR1 "$one"
for i in $(seq 100); do [ "$(grep -c '"event":"save"' saved/events.jsonl)" -gt "$saves_before" ] && break; sleep 0.1; done
holds "USR1 saves once" test "$(grep -c '"event":"save"' saved/events.jsonl)" = $((saves_before + 1))
kill -STOP "$one"
sleep 2
kill -CONT "$one"
wait $launcher
checks=$((checks + 1))
[ $? -eq 0 ] || fail "a run that was asked to save ends with an error"

# A stop waits for a slow save.
MXTRAIN_SAVE_DELAY_MS=3000 begin_run 2 slow --kvstore dist_sync train.epochs=20000 train.save.every=20000
kill -TERM "$(newest slow)"
ends 143 "a stop with a slow save"
expect 0 eval slow

# Processes that do not read the same.
sed 's/lr: 0.05/lr: 0.06/' net.yaml >other.yaml
launch -n 1 "$program" train net.yaml --out differs -q --kvstore dist_sync : -n 1 "$program" train other.yaml --out differs -q --kvstore dist_sync >stdout 2>stderr
code=$?
last="two configurations"
checks=$((checks + 1))
[ $code -eq 3 ] || fail "two configurations: exit code $code, expected 3"
says "rank 1 has another configuration than rank 0"

# Nor begin with the same, nor do the same.
"$program" train net.yaml --out weights_a -q --threads 1 train.epochs=1 && "$program" export weights_a a.safetensors -q >/dev/null
"$program" train net.yaml --out weights_b -q --threads 1 train.epochs=1 seed=8 && "$program" export weights_b b.safetensors -q >/dev/null
for n in a b; do mkdir $n && mv $n.safetensors $n/w.safetensors; done
sed "s#path: digits#path: $work/digits#" net.yaml >from_here.yaml
# differ WHAT FIRST SECOND: what the ranks are given, beside the same.
differ() {
  launch -n 1 bash -c "cd a && exec '$program' train ../from_here.yaml --out $work/differs -q --threads 1 --kvstore dist_sync train.kvstore.timeout=20s $2" : \
    -n 1 bash -c "cd b && exec '$program' train ../from_here.yaml --out $work/differs -q --threads 1 --kvstore dist_sync train.kvstore.timeout=20s $3" >stdout 2>stderr
  code=$?
  last="another $1"
  checks=$((checks + 1))
  [ $code -eq 3 ] || fail "another $1: exit code $code, expected 3"
  says "rank 1 has another $1 than rank 0"
  rm -rf differs
}
differ "state of the weights" train.weights.file=/proc/self/cwd/w.safetensors train.weights.file=/proc/self/cwd/w.safetensors
differ "state of the weights" "train.weights.file=/proc/self/cwd/w.safetensors 'train.freeze={layers: [convolution0*]}'" \
  "train.weights.file=/proc/self/cwd/w.safetensors 'train.freeze={layers: [convolution0*]}'"
differ --dry-run "" --dry-run
differ --dry-run --dry-run ""

# Images that another process cannot read are told by the first.
"$helper" images photos 40
write_photos photos photos 4
for image in $(ls photos/*/*.png | sed -n '1~10p'); do head -c 60 "$image" >part && cat part >"$image"; done
ranks 0 2 train photos.yaml --out broken --kvstore dist_sync data.max_bad=0.9
says "rank 1: "
holds "the images of rank 1 are not told" grep -qE "rank 1: [0-9]+ examples? could not be read, the first: .*photos/" stderr

# What one process alone cannot read is said by it, also if the others already wait for it in MPI.
for order in "0.0 nowhere" "1.0 nowhere" "0.0 net" "1.0 net"; do
  set -- $order
  first=net second=nowhere
  [ "$2" = nowhere ] || first=nowhere second=net
  launch -n 1 "$program" train $first.yaml --out differs -q --kvstore dist_sync : \
    -n 1 bash -c "sleep $1; exec '$program' train $second.yaml --out differs -q --kvstore dist_sync" >stdout 2>stderr
  code=$?
  last="a configuration that one process lacks ($order)"
  checks=$((checks + 1))
  [ $code -eq 3 ] || fail "$last: exit code $code, expected 3"
  says "there is no configuration nowhere.yaml"
done
# Refusals.
ranks 2 2 train net.yaml --out refused -q --kvstore dist_device_sync --device cpu
says "dist_device_sync sums in the memory of GPUs, and --device is cpu(0); use dist_sync"
expect 3 train net.yaml --out refused -q --kvstore dist_device_sync train.kvstore.sync_batch_norm=true train.kvstore.shard_states=true train.kvstore.workers=2
for key in sync_batch_norm shard_states workers; do
  says "train.kvstore.$key does not go with train.kvstore.type: dist_device_sync"
done
expect 3 train net.yaml --out refused -q --kvstore dist_device_sync train.kvstore.compression=2bit
says "train.kvstore.compression.type does not go with train.kvstore.type: dist_device_sync"
ranks 3 2 train net.yaml --out refused -q --kvstore dist_sync data.batch_size=auto
says "data.batch_size: auto is for one process"
for option in compression=2bit shard_states=true; do
  expect 3 train net.yaml --out refused -q train.kvstore.$option
  says "train.kvstore.${option%=*} is for gradients between processes, and train.kvstore.type is auto"
done
expect 3 train net.yaml --out refused -q train.kvstore.wire=bfloat16 train.kvstore.type=local
says "train.kvstore.wire is for gradients between processes or GPUs, and train.kvstore.type is local"
expect 3 train net.yaml --out refused_wire -q train.kvstore.wire=bfloat16
says "kvstore.wire=bfloat16 is for gradients that travel between several GPUs or processes, and there is 1 worker with KVStore 'local'"
expect 3 train net.yaml --out refused -q --kvstore dist_sync train.kvstore.compression=2bit train.kvstore.wire=bfloat16
says "train.kvstore.compression does not go with train.kvstore.wire"
expect 3 train net.yaml --out refused -q --kvstore dist_sync train.kvstore.compression=2bit train.amp=fp16
says "train.kvstore.compression does not go with train.amp"
expect 3 train net.yaml --out refused -q --kvstore dist_sync 'train.kvstore.compression={type: 2bit, threshold: 0}'
says "train.kvstore.compression.threshold"
ranks 2 2 train net.yaml --out refused -q
says "give --kvstore dist_sync"
ranks 3 3 train net.yaml --out refused -q --kvstore dist_sync
says "a batch of 16 cannot be divided among 3 workers"
holds "one process says it, and none is aborted" test "$(grep -c 'cannot be divided\|MPI_A' stderr)" = 1
holds "nothing was written" test ! -e refused
expect 0 train net.yaml --out alone -q --kvstore dist_sync train.epochs=1 --threads 1

# Ranks diverge together, and the first writes its results.
ranks 7 2 train net.yaml --out diverged -q --kvstore dist_sync train.optimizer.lr=1e30
says "the loss of 'softmax' is not finite at step"
holds "the results say so" grep -q '"end": "diverged"' diverged/result.json
holds "no other error is told" test "$(grep -c 'no wait has reported' stderr)" = 0

# An error of one process ends all, with its code.
ranks 8 2 train net.yaml --out /proc/none -q --kvstore dist_sync

# A rank killed at a random moment of the run (Open MPI's mpirun may itself hang if one is killed before it has called MPI_Init, and then
# kills no other): all end within ten seconds; the run resumes to the bits of an undisturbed one.
ranks 0 2 train norm.yaml --out whole -q --kvstore dist_sync train.epochs=40 train.save.every=20steps
for k in $(seq "$kills"); do
  rm -rf killed
  tries=0
  while [ ! -f killed/result.json ] && [ $((tries += 1)) -lt 6 ]; do
    resume=() events=$(cat killed/events.jsonl 2>/dev/null | wc -l)
    [ -f killed/config.yaml ] && resume=(--resume)
    launch -n 2 "$program" train norm.yaml "${resume[@]}" --out "$work/killed" -q --kvstore dist_sync train.epochs=40 \
      train.save.every=20steps --threads 1 >stdout 2>stderr &
    launcher=$!
    if [ $tries -le 2 ]; then
      for i in $(seq 200); do
        [ -f killed/checkpoints/last ] && [ "$(wc -l <killed/events.jsonl)" -gt "$events" ] && break
        sleep 0.05
      done
      sleep "0.$((RANDOM % 10))"
      kill -KILL $(newest killed) 2>/dev/null
      ranks_end killed "a rank was killed"
    fi
    wait $launcher 2>/dev/null
  done
  holds "kill $k: the resumed run has the bits of an undisturbed one" "$helper" compare whole/checkpoints/last killed/checkpoints/last
done

# Without the launcher's help: a rank that does not answer is noticed by the others, within train.kvstore.timeout.
notices_silence 2 --kvstore dist_sync train.kvstore.timeout=2s

# A rank that does not come out of MPI's end, the first or another one: no process outlives the timeout.
for rank in 0 1; do
  began=$SECONDS
  launch -n 2 env LD_PRELOAD="$(dirname "$program")/../lib/libmxtrain_hanging_end_$mpi.so" MXTRAIN_HANGING_RANK=$rank \
    "$program" train net.yaml --out "$work/hanging$rank" -q --kvstore dist_sync --threads 1 train.epochs=1 train.kvstore.timeout=4s >stdout 2>stderr
  code=$?
  last="rank $rank hangs at its end"
  checks=$((checks + 1))
  [ $code -eq 10 ] || fail "$last: exit code $code, expected 10"
  says "a process does not end for 4 s (train.kvstore.timeout)"
  holds "$last: $((SECONDS - began)) s" test $((SECONDS - began)) -lt 60
  holds "$last: a process remains" bash -c '! pgrep -f -- "--out $1/hanging$2( |\$)"' - "$work" "$rank"
  holds "$last: the results are not complete" grep -q '"end": "complete"' "hanging$rank/result.json"
done

# train.monitor: one process writes the table.
ranks 0 2 train net.yaml --kvstore dist_sync --out watched -q train.epochs=1 'train.monitor={pattern: "*_output", every: 1}'
holds "of two processes an array has two rows, or none" test -n "$(sed 1d watched/monitor.csv)" -a -z "$(cut -d, -f1,2 watched/monitor.csv | sort | uniq -d)"

finish
