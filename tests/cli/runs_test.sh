#!/usr/bin/env bash
# A run folder over its life: one process at a time, resumed with other batches, extended, on a disk that is full.
. "$(dirname "$0")/common.sh"

write_points

wait_for() {
  for _ in $(seq 600); do
    [ -s "$1" ] && return
    sleep 0.1
  done
  fail "$1 did not come"
}

# --- a run that is under way belongs to its process
"$program" train points.yaml --out busy train.epochs=100000000 train.save.every=1000epochs -q 2>background &
running=$!
wait_for busy/checkpoints/last
expect 8 train points.yaml --out busy --resume
says "busy belongs to a run that is under way (process $running); stop that one first, or choose another --out"
expect 8 train points.yaml --out busy --overwrite
says "busy belongs to a run that is under way"
holds "a refused run changed the other's files" test -s busy/metrics.csv
kill -9 $running
wait $running 2>/dev/null
# --- what a killed process leaves does not hold the folder
expect 0 train points.yaml --out busy --resume train.epochs=1
cp -r busy copied
expect 0 train points.yaml --out copied --resume train.epochs=1

# --- another batch size
expect 0 train points.yaml --out place train.max_steps=6
expect 3 train points.yaml --out place --resume data.batch_size=3
says "the checkpoint stands inside epoch 2, 8 examples after its beginning, where no batch of 3 begins; resume with data.batch_size=4"
expect 0 train points.yaml --out place --resume data.batch_size=2 --json
says "the checkpoint was made with batches of 4, this run has 2"
prints '"epochs":2,"steps":10'

# --- a finished run says so, and is extended
expect 0 train points.yaml --out done
expect 0 train points.yaml --out done --resume
says "the run is finished after 8 steps; --extend trains on"
expect 0 train points.yaml --out done --extend train.epochs=3 --json
prints '"epochs":5,"steps":20'
holds "metrics.csv lacks the new epochs" test "$(tail -1 done/metrics.csv | cut -d, -f1)" = 5
expect 0 train points.yaml --out more --resume-from done/checkpoints/last --extend train.epochs=1 --json
prints '"epochs":6,"steps":24'
"$program" train points.yaml --out stopped train.epochs=100000000 -q 2>background &
running=$!
wait_for stopped/checkpoints/last
kill -INT $running
wait $running
expect 2 train points.yaml --out stopped --extend
says "the run is not finished"

# --- flags that contradict each other
expect 2 train points.yaml --dry-run --extend
says "--dry-run begins a run anew"
expect 2 train points.yaml --overwrite
says "--overwrite replaces what --out DIR holds; say which folder"
expect 2 train points.yaml --out done --overwrite --resume
says "--overwrite begins a run anew"
expect 2 train points.yaml --out done --name other
says "--out is the run folder itself"

# --- what could not be written at the end is refused at the beginning
expect 8 train points.yaml --out traced --profile nowhere/trace.json
says "nowhere/trace.json"
holds "a run that cannot begin left its folder" test ! -e traced

# --- a disk that is full
if [ -e /dev/full ]; then
  expect 0 train points.yaml --out full
  ln -sf /dev/full full/events.jsonl
  expect 8 train points.yaml --out full --resume train.epochs=4
  says "cannot write full/events.jsonl: No space left on device"
  rm full/events.jsonl
  ln -sf /dev/full full/mxtrain.log
  expect 0 train points.yaml --out full --resume train.epochs=4
  says "warning: the log cannot be written, and ends here: No space left on device"
fi

# --- the bar is drawn where epochs are short
COLUMNS=60 "$program" train points.yaml --out bars train.epochs=100000000 --progress bar 2>bars.txt &
running=$!
for _ in $(seq 600); do
  grep -q 'epoch [0-9]* step [0-9]*/' bars.txt && break
  sleep 0.1
done
kill -INT $running
wait $running
holds "no bar was drawn" grep -q "\[ *\] epoch [0-9]* step [0-9]*/" bars.txt
holds "how to go on is not said" grep -q "to go on: mxtrain train bars/config.yaml --out bars --resume" bars.txt
expect 0 train bars/config.yaml --out bars --resume train.epochs=1
holds "a bar is wider than the terminal" test "$(tr '\r' '\n' <bars.txt | grep 'step [0-9]*/' | sed 's/.*\[K//' | awk '{ print length }' | sort -n | tail -1)" -lt 60
finish
