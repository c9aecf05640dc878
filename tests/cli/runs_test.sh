#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The life of a run folder: one process at a time, resumed with another batch size, extended, on a full disk.
. "$(dirname "$0")/common.sh"

write_points

# --- a run in progress is locked by its process
"$program" train points.yaml --out busy train.epochs=100000000 train.save.every=1000epochs -q 2>background &
running=$!
wait_for busy/checkpoints/last
expect 8 train points.yaml --out busy --resume
says "busy is in use by a running process (process $running); stop it first, or choose another --out"
expect 8 train points.yaml --out busy --overwrite
says "busy is in use by a running process"
holds "a refused run changed the other's files" test -s busy/metrics.csv
kill -9 $running
wait $running 2>/dev/null
# --- files of a killed process do not lock the folder
expect 0 train points.yaml --out busy --resume train.epochs=1
cp -r busy copied
expect 0 train points.yaml --out copied --resume train.epochs=1

# --- another batch size
expect 0 train points.yaml --out place train.max_steps=6
expect 3 train points.yaml --out place --resume data.batch_size=3
says "the checkpoint is inside epoch 2, 8 examples after its start, where no batch of 3 starts; resume with data.batch_size=4"
expect 0 train points.yaml --out place --resume data.batch_size=2 --json
says "the checkpoint was made with batches of 4, this run has 2"
prints '"epochs":2,"steps":10'

# --- other settings: each is reported, and stored in the folder
lacks() { ! grep -qF -- "$1" stderr; }
expect 0 train points.yaml --out other train.max_steps=6 train.optimizer.momentum=0.5
expect 0 train other/config.yaml --out other --resume train.max_steps=7
holds "settings are named that did not change" lacks "another train.optimizer"
expect 0 train points.yaml --out other --resume train.optimizer.lr=0.5 train.optimizer.momentum=0.25
says "the run continues with a different train.optimizer.lr: 0.5, before 0.01"
says "the run continues with a different train.optimizer.momentum: 0.25, before 0.5"
says "the run continues with a different train.max_steps: 0, before 7"
holds "config.yaml tells of the former rate" grep -q "lr: 0.5" other/config.yaml
holds "command.txt lacks a command" test "$(wc -l <other/command.txt)" -eq 3
expect 3 train points.yaml --out other --extend train.optimizer=adam
says "the run continues with a different train.optimizer.name: adam, before sgd"
says "it belongs to another net or another optimizer"

# --- a run is named after the configuration's file; one of another net, recipe or data is not continued
sed '/^name:/d' points.yaml >tuned.yaml
expect 0 train tuned.yaml --json
prints '"run":"runs/tuned-0001"'
write_deep
one_line() { # and no run is touched
  holds "$last: more than one line" test "$(grep -c '^error\|the run continues' stderr)" -eq 1
  holds "$last: the run was changed" cmp -s tuned.last runs/tuned-0001/checkpoints/last
}
cp runs/tuned-0001/checkpoints/last tuned.last
for flags in --resume --extend "--extend --or-begin"; do
  # shellcheck disable=SC2086 # words
  expect 3 train deep.yaml --name tuned $flags
  says "error: runs/tuned-0001 is a run of another net: "
  one_line
done
sed 's/^train: {/train: {optimizer: {name: adam}, /' tuned.yaml >adam.yaml
expect 3 train adam.yaml --name tuned --extend --or-begin
says "runs/tuned-0001 is a run of another recipe: train.optimizer.name is sgd in the run, now adam; to begin a run of this configuration, give it a name of its own (--name NAME)"
one_line
says "; to continue it with what differs, add train.optimizer.name=adam"
# The same table elsewhere, under another name, is the same data.
expect 0 train tuned.yaml --name placed train.epochs=1 -q
mkdir elsewhere
cp points.csv elsewhere/spots.csv
sed 's|points.csv|elsewhere/spots.csv|' tuned.yaml >placed.yaml
expect 0 train placed.yaml --name placed --resume train.epochs=2 -q
silent=$(grep -c 'data differ from' stderr || true)
[ "$silent" = 0 ] || fail "the same table elsewhere counts as other data"
sed '2s/1$/0/; 3s/0$/1/' points.csv >others.csv
sed 's/points.csv/others.csv/' tuned.yaml >others.yaml
expect 3 train others.yaml --name tuned --resume train.epochs=4
says "runs/tuned-0001 is a run of another data: data.train.path is "
one_line
expect 3 train deep.yaml --resume-from runs/tuned-0001/checkpoints/last --name third
says "runs/tuned-0001/checkpoints/last is a run of another net: "
expect 0 train tuned.yaml --resume data.train.path=others.csv train.epochs=3
says "the run continues with a different data.train.path"

# --- a run folder can be used as a configuration, and is the run that is resumed, even if newer runs have its name
expect 0 train points.yaml --out mine train.max_steps=3
expect 0 train points.yaml
expect 0 train mine --resume train.max_steps=5 --json
prints '"run":"mine","epochs":1,"steps":5'
expect 0 train mine/config.yaml --resume train.max_steps=6 --json
prints '"run":"mine","epochs":1,"steps":6'
(cd mine && "$program" train config.yaml --resume train.max_steps=7 --json) >stdout 2>stderr
holds "config.yaml in its own folder is not that run" grep -qF '"steps":7' stdout
expect 0 train mine --extend train.epochs=1 --json
prints '"run":"mine"'
expect 0 train mine --resume --or-begin --json
prints '"run":"mine"'
holds "a newer run was touched" test "$(wc -l <runs/points-0001/command.txt)" -eq 1
expect 0 train runs/latest --resume
says "the run is complete after 8 steps"
holds "another run was begun" test ! -e runs/points-0002
expect 0 check mine
for command in "train mine/checkpoints/last --resume" "train mine/checkpoints/best"; do
  # shellcheck disable=SC2086 # words
  expect 3 $command
  says " is a checkpoint, not a configuration; give its run folder: mxtrain train mine --resume"
done
expect 3 check mine/checkpoints/last
says " is a checkpoint, not a configuration; give its run folder: 'mine'"
holds "check is answered with a command of train" lacks "--resume"
cp mine/checkpoints/last stray
expect 3 train stray --resume
says "stray is a checkpoint, not a configuration; give its run folder: mxtrain train RUN --resume"
mkdir empty
expect 3 train empty
says "empty is a folder without config.yaml; give a configuration file (YAML) or a run folder, or let \`mxtrain init\` write a configuration for the data in it"
# a configuration without a name is called like its file, in its run folder too
sed '/^name:/d' points.yaml >nameless.yaml
expect 0 train nameless.yaml train.max_steps=3
expect 0 train runs/nameless-0001/config.yaml --resume train.max_steps=4 --json
prints '"run":"runs/nameless-0001","epochs":1,"steps":4'
expect 0 train runs/nameless-0001 train.max_steps=2 --json
prints '"run":"runs/nameless-0002"'

# --- a plug-in of the command line belongs to the run: its configuration has it, its checkpoints only name it
sed 's/  layers:/  layers:\n    - twice/' points.yaml >twice.yaml
cp "$plugin" twice.so
expect 3 train twice.yaml --out twice
expect 0 train twice.yaml --out twice --plugin twice.so
holds "config.yaml lacks the plug-in" grep -qF "plugins: [$work/twice.so]" twice/config.yaml
says "next: mxtrain eval twice --plugin $work/twice.so, or mxtrain infer twice INPUT --plugin $work/twice.so"
holds "origin.txt does not say where it is from" grep -q "^plugins  *command line$" twice/origin.txt
expect 0 train twice --resume train.epochs=3
expect 3 train twice.yaml --out twice --resume
says "the run was trained with the plug-in $work/twice.so; plug-ins run arbitrary code, so those of a checkpoint are loaded only if you name them: --plugin"
expect 3 train twice.yaml --out again --resume-from twice/checkpoints/last --extend
says "twice/checkpoints/last was trained with the plug-in $work/twice.so"
expect 3 eval twice
says "was trained with the plug-in $work/twice.so"
# One that is named twice is one; two of the same file name cannot be told apart.
ln -s twice.so link.so
expect 0 train twice.yaml --out named --plugin twice.so --plugin ./twice.so --plugin link.so
holds "a plug-in is written twice" grep -qF "plugins: [$work/twice.so]" named/config.yaml
mkdir 'my plugins' && cp twice.so 'my plugins'
expect 2 train twice.yaml --out both --plugin twice.so --plugin 'my plugins/twice.so'
says "--plugin twice.so and --plugin my plugins/twice.so have the same file name"
holds "a refused run left its folder" test ! -e both
expect 0 train twice.yaml --out quoted --plugin 'my plugins/twice.so'
says "mxtrain infer quoted INPUT --plugin '$work/my plugins/twice.so'"
# One that has moved is given again.
mkdir moved && mv twice.so moved
expect 3 train twice --resume train.epochs=4
says "cannot load the plug-in $work/twice.so"
expect 0 train twice --resume train.epochs=4 --plugin moved/twice.so
holds "config.yaml names the old place" grep -qF "plugins: [$work/moved/twice.so]" twice/config.yaml
expect 0 eval twice --plugin moved/twice.so

# --- an override without a value is a slip
expect 3 train points.yaml train.epochs= --out nothing
says "command line:1:1: error: 'train.epochs=' gives no value"
says "help: write train.epochs=VALUE, or train.epochs=null for the default"
expect 0 train points.yaml --out default train.epochs=null --json
prints '"epochs":10'

# --- a run that diverged says so, until it is resumed
write_deep
expect 7 train deep.yaml --out runs/wild train.optimizer.lr=1e20 train.save.every=1steps
holds "result.json does not say what ended the run" grep -q '"end": "diverged"' runs/wild/result.json
holds "result.json does not say where" grep -q '"steps": 2,' runs/wild/result.json
expect 0 runs
holds "runs does not say that it diverged" grep -q '^wild  *diverged ' stdout

# --- classes map to outputs by position: renamed folders are refused
"$helper" images shapes 8
write_photos shapes shapes 4
expect 0 train photos.yaml --out classes
mv shapes/dark shapes/very_light
expect 3 train photos.yaml --out classes --extend
says "the run was trained on 2 classes (dark, light), the data now have 2 (light, very_light)"

# --- the printed command to continue works in a shell
expect 0 train points.yaml --out 'my run' train.max_steps=3
says "next: mxtrain eval 'my run'"
expect 3 train 'my run/checkpoints/last' --resume
says "give its run folder: mxtrain train 'my run' --resume"
holds "command.txt does not quote" grep -qF -- "--out 'my run'" 'my run/command.txt'

# --- a completed run says so, and can be extended
expect 0 train points.yaml --out done
expect 0 train points.yaml --out done --resume
says "the run is complete after 8 steps; use --extend to train longer"
expect 0 train points.yaml --out done --extend train.epochs=3 --json
prints '"epochs":5,"steps":20'
holds "metrics.csv lacks the new epochs" test "$(tail -1 done/metrics.csv | cut -d, -f1)" = 5
expect 0 train done --resume train.epochs=7 --json
says "the run continues with a different train.epochs: 7 in all, before 5"
prints '"epochs":7,"steps":28'
expect 0 train done --resume
says "the run is complete after 28 steps"
expect 0 train done --resume train.epochs=6
says "the run is complete after 28 steps"
expect 0 train done --resume train.epochs=8 --json
says "the run continues with a different train.epochs: 8 in all, before 7"
prints '"epochs":8,"steps":32'
expect 0 train points.yaml --out more --resume-from done/checkpoints/last --extend train.epochs=1 --json
prints '"epochs":9,"steps":36'
"$program" train points.yaml --out stopped train.epochs=100000000 -q 2>background &
running=$!
wait_for stopped/checkpoints/last
kill -INT $running
wait $running
expect 2 train points.yaml --out stopped --extend
says "the run is not finished"

# --- closing the terminal saves the run; a duplicate signal counts once
for signals in HUP "TERM TERM"; do
  rm -rf stopped
  "$program" train points.yaml --out stopped train.epochs=100000000 train.save.every=1000000epochs -q 2>background &
  running=$!
  wait_for stopped/metrics.csv
  for signal in $signals; do kill -"$signal" $running; done
  wait $running
  code=$?
  holds "$signals: exit code $code" test $code -eq "$([ "$signals" = HUP ] && echo 129 || echo 143)"
  holds "$signals: nothing was saved" test -s stopped/checkpoints/last
done

# --- a reader that goes away does not end the training
"$program" train points.yaml --out unread train.epochs=50 2>&1 | head -1 >/dev/null
code=${PIPESTATUS[0]}
holds "train | head: exit code $code" test "$code" -eq 0
holds "train | head: not trained to the end" test "$(tail -1 unread/metrics.csv | cut -d, -f1)" = 50

# --- flags that contradict each other
expect 2 train points.yaml --dry-run --extend
says "--dry-run starts a new run"
expect 2 train points.yaml --overwrite
says "--overwrite needs --out DIR, the folder to replace"
expect 2 train points.yaml --out done --overwrite --resume
says "--overwrite starts a new run"
expect 2 train points.yaml --out done --name other
says "--out is the run folder itself"

# --- output that could not be written at the end is refused at the start
expect 8 train points.yaml --out traced --profile nowhere/trace.json
says "nowhere/trace.json"
holds "a run that cannot begin left its folder" test ! -e traced

# --- a damaged result is named, and does not end a run that is resumed
expect 0 train points.yaml --out harmed
for text in broken '[]' ''; do
  printf '%s' "$text" >harmed/result.json
  expect 0 train harmed --resume
  says "warning: cannot write the report; the run continues without it: "
  says "harmed/result.json is damaged: "
done

# --- a disk that is full
# full_at FILE COMMAND...: writing this file finds no room.
full_at() {
  FAULTS_BELOW=$work/$1 FAULTS_LOG=/dev/null FAULTS_ONLY=w FAULTS_AT=1+ FAULTS_KIND=ENOSPC GOMP_SPINCOUNT=1000 LD_PRELOAD=$faults "${@:2}"
}
expect 0 train points.yaml --out full
full_at full/events.jsonl expect 8 train points.yaml --out full --resume train.epochs=4
says "cannot write full/events.jsonl: No space left on device"
says "free some space there; then continue: mxtrain train full --resume"
full_at full/mxtrain.log expect 0 train points.yaml --out full --resume train.epochs=4
says "warning: the log stops here: cannot write full/mxtrain.log: No space left on device"
# --- failures to write reports do not end the run
expect 0 train points.yaml --out shown train.epochs=1
rm -r shown/tb shown/plots shown/report.html && touch shown/tb shown/plots && mkdir shown/report.html
expect 0 train points.yaml --out shown --extend train.epochs=2 --json
prints '"epochs":3'
says "warning: cannot write the TensorBoard files; the run continues without it: "
says "warning: cannot write curves; the run continues without it: "
says "warning: cannot write the report; the run continues without it: "

# --- a second signal ends the run at once, and says since when nothing is saved
MXTRAIN_SAVE_DELAY_MS=20000 "$program" train points.yaml --out hasty train.epochs=100000000 train.save.every=100000 -q 2>hasty.txt &
running=$!
wait_for hasty/config.yaml
sleep 0.5
kill -INT $running
sleep 0.5
kill -INT $running
wait $running
code=$?
holds "a second signal: exit code $code, expected 130" test $code -eq 130
holds "it does not say what is saved: $(cat hasty.txt)" grep -qF "ended at once, without saving; nothing was saved since the start; to continue: mxtrain train hasty --resume" hasty.txt

# --- the bar is drawn where epochs are short
# draw COLUMNS CONFIG OUT [TEXT]: trains, with a bar in bars.txt, until one with this text, or with a step, has been drawn.
draw() {
  COLUMNS=$1 "$program" train "$2" --out "$3" train.epochs=100000000 --progress bar 2>bars.txt &
  running=$!
  for _ in $(seq 600); do
    grep -q "${4:-step [0-9]*/}" bars.txt && break
    sleep 0.1
  done
  kill -INT $running
  wait $running
}
draw 80 points.yaml bars
holds "no bar was drawn" grep -q "\[ *\] epoch *[0-9]*/100000000  step [0-9]*/4  0 %  loss [0-9.]*" bars.txt
holds "the command to continue is not printed" grep -q "to continue: mxtrain train bars --resume" bars.txt
expect 0 train bars/config.yaml --out bars --resume train.epochs=1
holds "a bar is wider than the terminal" test "$(tr '\r' '\n' <bars.txt | grep 'step [0-9]*/' | sed 's/.*\[K//' | awk '{ print length }' | sort -n | tail -1)" -lt 80
draw 40 points.yaml narrow
holds "a narrow bar lacks the step" grep -q "^.\[Kepoch *[0-9]*/100000000  step [0-9]*/4" <(tr '\r' '\n' <bars.txt)

# --- validation moves, too; in a pipe the first line comes within seconds, of a run of any length
{ echo a,b,c,y; for i in $(seq 20000); do echo "1,2,3,$((i % 2))"; done; } >few.csv
{ cat few.csv; for _ in $(seq 9); do tail -n +2 few.csv; done; } >many.csv
sed 's/^train:/  val: {source: csv, path: many.csv, columns: {data: [a, b, c], softmax_label: y}}\n&/' points.yaml >slow.yaml
draw 120 slow.yaml moving 'validating [1-9][0-9]*/200000 examples'
holds "the bar does not move in validation" grep -q "validating [1-9][0-9]*/200000 examples  0 %  [0-9:]* left, [0-9:]* in the validation" bars.txt
"$program" train points.yaml --out lines train.epochs=100000000 --progress lines 2>lines.txt &
running=$!
for _ in $(seq 100); do
  grep -q 'step [0-9]*/' lines.txt && break
  sleep 0.1
done
kill -INT $running
wait $running
holds "no line within ten seconds" grep -q "^epoch *[0-9]*/100000000  step [0-9]*/4  0 %  loss" lines.txt
holds "the line of an epoch is too long" test "$(grep train: lines.txt | awk '{ print length }' | sort -n | tail -1)" -le 100
finish
