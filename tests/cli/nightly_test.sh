#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unattended use from scripts: the newest usable run, empty folders, missing inputs, complete results, a sweep whose process was killed.
. "$(dirname "$0")/common.sh"

write_points
"$helper" images photos 8
write_photos photos photos 4

# --- runs/latest: the newest run that has saved something, whatever has failed since
expect 0 train photos.yaml --name good
holds "the run is not the latest" test "$(readlink runs/latest)" = good-0001
write_deep
expect 7 train deep.yaml --name bad train.optimizer.lr=1e30
holds "a run that saved nothing is the latest" test "$(readlink runs/latest)" = good-0001
expect 0 infer runs/latest photos
says "model: runs/good-0001/checkpoints/best"
expect 0 eval runs/latest
prints "runs/good-0001/checkpoints/best on 16 examples"
expect 0 train photos.yaml --name tuned train.weights=runs/latest
says "runs/latest is $work/runs/good-0001"
holds "the configuration names a link" grep -q "runs/good-0001" runs/tuned-0001/config.yaml
expect 0 diff runs/good-0001 runs/latest
prints "runs/tuned-0001"

# --- quiet mode prints nothing if nothing is wrong
expect 0 check points.yaml -q
holds "check -q says something" test ! -s stdout -a ! -s stderr

# --- the first night of a nightly job, and the next ones
expect 8 train points.yaml --name nightly --extend
says "contains no run of 'nightly' to continue; use --or-begin to start one"
for epochs in 2 4; do
  expect 0 train points.yaml --name nightly --extend --or-begin --json
  prints "\"epochs\":$epochs"
done
# A run that was killed before its first save does not stop the nights that follow.
expect 0 train points.yaml --name cut train.epochs=1
rm -r runs/cut-0001/checkpoints
expect 2 train points.yaml --name cut --extend
says "was stopped before its first save, so there is nothing to extend"
expect 0 train points.yaml --name cut --extend --or-begin
says "warning: runs/cut-0001 was stopped before its first save; starting it again"
expect 0 train points.yaml --out elsewhere --resume --or-begin
# Nor does one that never began, with its lock and log.
mkdir void
expect 2 train points.yaml --out void --extend
says "void was stopped before its first save, so there is nothing to extend"
holds "a run that did not begin has a log" test ! -e void/mxtrain.log
expect 8 train points.yaml --out void --resume train.weights=absent
holds "a folder without a run is to be continued" test "$(grep -c 'then continue' stderr)" -eq 0
for flags in --resume "--resume --or-begin" "--extend --or-begin" --overwrite; do
  rm -rf void
  mkdir void
  touch void/.lock void/mxtrain.1.log
  echo "a failed start" >void/mxtrain.log
  # shellcheck disable=SC2086 # words
  expect 0 train points.yaml --out void $flags
  holds "$flags: no run" test -s void/checkpoints/last -a -s void/config.yaml -a -s void/mxtrain.log
done
rm -rf void
mkdir void
echo mine >void/mxtrain.log
expect 8 train points.yaml --out void --overwrite
says "void contains mxtrain.log, which does not belong to a run"
# A night that was killed after one of its epochs is completed by the next one, which does not extend it.
# killed_after EPOCH: as if the run of name half had been killed then.
killed_after() {
  rm runs/half-0001/result.json
  ln -f runs/half-0001/checkpoints/epoch-000"$1" runs/half-0001/checkpoints/last
}
expect 0 train points.yaml --name half
killed_after 1
expect 2 train points.yaml --name half --extend
says "the run is not finished: it has made 4 of 8 steps; resume it without extending"
expect 0 train points.yaml --name half --extend --or-begin --json
says "runs/half-0001 has made 4 of 8 steps; continuing it before it is extended"
prints '"epochs":2,"steps":8'
expect 0 train points.yaml --name half --extend --or-begin --json
prints '"epochs":4,"steps":16'
killed_after 3
expect 0 train points.yaml --name half --extend --or-begin train.epochs=2 --json
prints '"epochs":4,"steps":16'
expect 2 train points.yaml --or-begin
says "--or-begin needs --resume or --extend"

# --- an empty folder or list is not an error
mkdir -p inbox/deeper
expect 0 infer runs/tuned-0001 inbox --output none.csv --copy-to sorted
says "no images found: nothing to predict"
holds "the head alone" test "$(cat none.csv)" = file,predicted,score
expect 0 infer runs/tuned-0001 inbox -q
holds "-q says something" test ! -s stderr
expect 0 infer runs/tuned-0001 inbox --output-layer flatten0 --output none.npy
holds "no rows" grep -qaF "'shape': (0, 192,)" none.npy

# --- a missing input does not affect the others
expect 4 infer runs/tuned-0001 photos/dark nothere.png
holds "the others are not all there" test "$(grep -c '^photos/dark' stdout)" -eq 8
says "warning: cannot open nothere.png: No such file or directory"
expect 8 infer runs/tuned-0001 nothere.png nordas
says "there is no file or folder nothere.png, nordas"

# --- results are complete or absent
mkdir small
if unshare -rm sh -c 'mount -t tmpfs -o size=8k none small' 2>/dev/null; then
  for i in $(seq 1000); do echo photos/dark/000.png; done >long.txt
  unshare -rm sh -c 'mount -t tmpfs -o size=8k none small && "$@"; code=$?; ls -A small >left; exit $code' sh "$program" \
    infer runs/tuned-0001 long.txt --format csv --output small/results.csv >stdout 2>stderr
  code=$?
  last="infer on a small disk"
  holds "$last: exit code $code" test $code -eq 8
  says "cannot write small/results.csv: No space left on device; free some space there"
  holds "$last: a part is left" test ! -s left
fi

# --- sorting again with other results: copies of an earlier run in other folders are reported
expect 0 infer runs/tuned-0001 photos --copy-to heaps --min-score 1
says "0 sorted into the folders of heaps, 16 into heaps/unsure"
expect 0 infer runs/tuned-0001 photos --copy-to heaps
says "16 sorted into the folders of heaps"
says "16 copies of these images are also in another folder, from an earlier run; remove those, or sort into a new folder: heaps/unsure/"

# --- a sweep that was killed: the next one waits for the child that it left
sweep=(sweep points.yaml 'train.optimizer.lr=[0.1, 0.01]' train.epochs=3 --out search)
expect 0 "${sweep[@]}"
sed -i 's/"exit_code": 0/"exit_code": null/' search/sweep.json
# Another process holds the folder of a run until the sweep has said that it waits.
(
  flock 9
  echo locked >locked
  for _ in $(seq 600); do
    grep -q "waiting for it to finish" stderr && break
    sleep 0.1
  done
) 9<>search/0001/.lock &
holder=$!
wait_for locked
expect 0 "${sweep[@]}"
says "search/0001 is in use by another process; waiting for it to finish"
wait $holder
exec 9<>search/.lock
flock 9
expect 8 "${sweep[@]}"
says "search is in use by a running process"
exec 9>&-
finish
