#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reports of a run: curves, TensorBoard's files, sheets, tables and figures of an evaluation, report.html; sweeps and other commands.
. "$(dirname "$0")/common.sh"

png() { test "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a; }
json() { tr -d '\n' <"$1" | "$helper" json >/dev/null; }

"$helper" images photos 8
write_photos photos photos 4

# --- a run draws itself
expect 0 train photos.yaml --out run train.epochs=2
for file in plots/loss.svg plots/metrics.svg plots/learning_rate.svg plots/loss.png samples/train_batch.png report.html result.json; do
  holds "there is no run/$file" test -s "run/$file"
done
for file in run/plots/*.png run/samples/*.png; do holds "$file is no PNG" png "$file"; done
holds "the curves lack a legend" grep -q ">validation<" run/plots/loss.svg
holds "events have no version" grep -q '"event":"start".*"schema":1' run/events.jsonl
holds "there are no events for TensorBoard" test "$(ls run/tb | grep -c '^events.out.tfevents')" -eq 1
holds "TensorBoard's file lacks the accuracy" grep -qa "val/accuracy" run/tb/events.out.tfevents.*
holds "the environment lacks the build" grep -q "^mxtrain=" run/env.txt
json run/result.json || fail "result.json is no JSON"

# --- the learning rate within an epoch, and the loss of single steps
write_points
expect 0 train points.yaml --out warm train.epochs=1 'train.lr_schedule={name: cosine, warmup_steps: 2}' train.report_every=1
rates=$(sed -n 's/.*"rates":\(\[\[.*\]\]\).*/\1/p' warm/events.jsonl)
holds "the rates of the epoch are $rates" grep -qE '^\[\[0(\.0)?,0\.0033.*\],\[0\.25,0\.0066.*\],\[0\.5,0\.01\],\[0\.75,0\.005' <<<"$rates"
holds "losses of steps do not make up the mean over the epoch" awk -F'"loss":|,"recent_loss":|,"lr":' '
    /"event":"step"/ { sum += $3; ++n; if ((d = sum / n - $2) > 1e-6 || d < -1e-6) exit 1; differ = differ || $2 != $3 } END { exit !(n == 4 && differ) }' warm/events.jsonl

# --- a run of a few steps tells its speed, and that these are few
expect 0 train points.yaml --out brief train.max_steps=6
says "examples/s in training (of 6 batches with their start, too few to tell what limits it)"
holds "the limit of a brief run is told" test "$(grep -c 'limit: ' stderr)" -eq 0
holds "result.json lacks the speed of a brief run" grep -qE '"images_per_second": [1-9]' brief/result.json
holds "result.json lacks the batches" grep -qF '"timed_batches": 6' brief/result.json

# --- a resumed run continues its curves, and has one more file for TensorBoard
expect 0 train photos.yaml --out run --extend train.epochs=1
holds "the curve has not three epochs" test "$(wc -l <run/metrics.csv)" -eq 4
holds "the second segment has no file of events" test "$(ls run/tb | grep -c '^events.out.tfevents')" -eq 2

# --- evaluation: tables, figures, and the report
expect 0 eval run
prints "macro mean"
prints "weighted mean"
prints "expected calibration error"
prints "where its probability is at least"
says "tables and figures: run/eval, all in run/report.html"
prints "of the predictions with at least this score"
holds "a score without predictions is listed" test "$(grep -c '>= .* 0.0000 ' stdout)" -eq 0
for file in report.json classes.csv confusion.csv calibration.csv thresholds.csv decisions.csv mistakes.csv confusion.svg classes.svg reliability.svg confusion.png; do
  holds "there is no run/eval/$file" test -s "run/eval/$file"
done
json run/eval/report.json || fail "report.json is no JSON"
holds "the report lacks the evaluation" grep -q "confusion matrix" run/report.html
holds "the report does not say that the speed of a brief run includes its start" grep -q "images/s.*, of 4 batches with their start<" run/report.html
holds "the report does not say how the run ended" grep -qF "<td>end</td><td>trained to the end</td>" run/report.html
holds "the report does not say of how many steps" grep -qE "<td>steps</td><td>12 of 12</td>" run/report.html
holds "the report reads from elsewhere" test "$(grep -cE '(src|href)="(http|//|/)' run/report.html)" -eq 0
# The matrix counts every example once, and its diagonal is the accuracy.
right=$(awk -F, 'NR > 1 { sum += $NR } END { print sum }' run/eval/confusion.csv)
all=$(awk -F, 'NR > 1 { for (i = 2; i <= NF; ++i) sum += $i } END { print sum }' run/eval/confusion.csv)
holds "the matrix does not count every image" test "$all" -eq "$(find photos -name '*.png' | wc -l)"
accuracy=$(sed -n 's/.*"accuracy": \([0-9.e-]*\).*/\1/p' run/eval/report.json | head -1)
holds "the diagonal is not the accuracy" awk "BEGIN { exit !(($right / $all - $accuracy) ^ 2 < 1e-10) }"
holds "a mistake for each that is off the diagonal" test "$(($(wc -l <run/eval/mistakes.csv) - 1))" -eq $((all - right))
expect 0 eval run/checkpoints/last photos --output elsewhere --json
holds "--output was not written" test -s elsewhere/classes.csv
prints '"label_doubtful":'
expect 8 eval run --output photos.yaml
if [ "$(id -u)" -ne 0 ]; then
  chmod -R a-w run/eval run
  expect 0 eval run
  says "tables and figures were not written"
  chmod -R u+w run
fi

# --- a table of runs, and two of them side by side
expect 0 train photos.yaml --out runs/other train.epochs=1 train.optimizer.lr=0.01
cp -r run runs/one
expect 0 runs
prints "finished"
prints "accuracy"
expect 0 runs --format csv
holds "two runs and a header" test "$(wc -l <stdout)" -eq 3
expect 0 runs --json
holds "an object for each run" test "$(wc -l <stdout)" -eq 2
expect 8 runs nowhere
says "there is no folder nowhere"
expect 0 diff runs/one runs/other --plot curves.svg
prints "train.optimizer.lr"
prints "0.01"
prints "best accuracy"
holds "the curves of both" test "$(grep -c ">runs/" curves.svg)" -ge 2
expect 0 diff runs/one runs/other --json
json stdout || fail "diff --json is no JSON"
expect 8 diff runs/one photos
says "photos is not a run folder"

# --- a sweep: a run for each combination, killed and continued, sorted
write_points
expect 0 sweep points.yaml 'train.optimizer.lr=[0.1, 0.001]' 'train.optimizer.name=[sgd,adam]' train.epochs=3 --out search
holds "four runs" test "$(ls -d search/0* | wc -l)" -eq 4
holds "a line for each run" test "$(wc -l <search/results.csv)" -eq 5
holds "results are not sorted" test "$(tail -n +2 search/results.csv | cut -d, -f6 | sort -gr)" = "$(tail -n +2 search/results.csv | cut -d, -f6)"
holds "the image is no PNG" png search/results.png
rm -r search/0003 && sed -i '/"0003"/,/exit_code/s/"exit_code": 0/"exit_code": null/' search/sweep.json
touch -d '2001-01-01' search/0002/metrics.csv
expect 0 sweep points.yaml 'train.optimizer.lr=[0.1, 0.001]' 'train.optimizer.name=[sgd,adam]' train.epochs=3 --out search --json
json stdout || fail "sweep --json is no JSON"
holds "a run that had ended was made again" test search/0002/metrics.csv -ot search/sweep.json -a "$(date -r search/0002/metrics.csv +%Y)" = 2001
holds "a run that was missing was not made" test -s search/0003/metrics.csv
expect 2 sweep points.yaml 'train.optimizer.lr=[0.1]' --out search
says "search contains another sweep"
expect 3 sweep points.yaml 'train.optimizer.lt=[0.1, 0.2]' --out typo
says "did you mean"
holds "a sweep that cannot begin left its folder" test ! -e typo
expect 2 sweep points.yaml train.epochs=1
says "nothing to sweep"
expect 2 sweep points.yaml train.optimizer.lr=0.1..1
says "--random N"
expect 0 sweep points.yaml train.optimizer.lr=1e-3..1 train.epochs=1 --random 3 --out drawn
holds "three draws" test "$(wc -l <drawn/results.csv)" -eq 4
"$program" sweep points.yaml 'train.optimizer.lr=[0.1, 0.01]' train.epochs=100000000 --out endless 2>background &
running=$!
for _ in $(seq 100); do
  [ -s endless/0001/metrics.csv ] && break
  sleep 0.1
done
kill -INT $running
wait $running
holds "a sweep that is stopped ends with another code" test $? -eq 130
holds "the interrupted run is not reported as stopped" grep -q "^0001,stopped" endless/results.csv
holds "a run of a stopped sweep continues" test ! -e endless/0002

# --- runs: those of sweeps and folds too
expect 0 runs .
holds "runs hides those of a sweep" grep -q '^search/0001  *finished ' stdout
expect 0 runs . --format csv
holds "runs hides those of a sweep in CSV" grep -q '^search/0001,finished,' stdout

# --- a range test of the learning rate: the curve ends where the loss diverges, and the rate is one at which it falls
write_deep
expect 0 lr-find deep.yaml --steps 60 --out rates --json
says "suggested initial rate: "
says "; the loss has risen again at "
prints '"diverged":true'
holds "the suggestion is a rate at which the loss rises" awk -F, -v rate="$(sed 's/.*"suggestion":\([^,]*\).*/\1/' stdout)" '
    NR == 2 { first = $2 } NR > 1 { last = $2 } END { exit !(rate > first && rate < last / 3) }' rates/lr_find.csv
expect 0 lr-find points.yaml --steps 60 --to 0.1 --out low
says "warning: the loss did not diverge up to a rate of 0.1000, so a higher rate may be better; extend the test with --to 10.00"
expect 9 lr-find points.yaml --steps 60 --from 1e5 --to 1e6 --out high
says "the loss diverges after "
says ", too early for a suggestion (see high/lr_find.svg)"
says "start lower, with --from 100.0"
holds "there is no curve of a test without a suggestion" png high/lr_find.png
holds "lr_find.csv has no rising rate" awk -F, 'NR > 2 && $2 <= before { exit 1 } { before = $2 }' rates/lr_find.csv
holds "the image is no PNG" png rates/lr_find.png

# --- the drawing of the net
expect 0 plan "$source_dir/configs/imagenet/resnet50.yaml" data.batch_size=1 --plot-net net.svg
for text in "conv 7×7, 64, stride 2, batch norm, relu" "25557032 parameters" "global avg pooling" ">sum, relu<" "stage4_unit2"; do
  holds "net.svg lacks $text" grep -qF -- "$text" net.svg
done
expect 2 plan points.yaml --plot-net net.jpg
says "figures are written as .svg or .png"
finish
