#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Files of strangers and slips of the user: nothing that a command reads is replaced, nothing is written or shown from elsewhere, and a file
# of a few kilobytes neither ends the program nor keeps it for long.
. "$(dirname "$0")/common.sh"
write_points
expect 0 train points.yaml --out run -q

# safetensors FILE HEADER: a file of one number.
safetensors() {
  local size=${#2}
  {
    printf "\\x$(printf %02x $((size & 255)))\\x$(printf %02x $((size >> 8 & 255)))\\x$(printf %02x $((size >> 16 & 255)))\\x00\\x00\\x00\\x00\\x00"
    printf '%s\0\0\0\0' "$2"
  } >"$1"
}
# repeated COUNT TEXT
repeated() { printf "%$1s" | sed "s/ /$2/g"; }
# bounded CODE ARGUMENT...: as expect, in twenty seconds.
bounded() {
  local wanted=$1 code
  shift
  checks=$((checks + 1))
  last="mxtrain $*"
  timeout -k 5 20 "$program" "$@" >stdout 2>stderr
  code=$?
  [ $code -eq "$wanted" ] || fail "$last: exit code $code, expected $wanted"
}

# --- what a command reads
for file in points.csv ./points.csv run/metrics.csv run/checkpoints/best; do
  sum=$(md5sum <"$file")
  expect 2 infer run points.csv --output "$file" --format csv
  says "would replace what the command reads"
  holds "infer --output $file changed it" test "$sum" = "$(md5sum <"$file")"
done
cp points.csv kept.csv
ln points.csv linked.csv
expect 2 infer run points.csv --output linked.csv
says "linked.csv would replace what the command reads (points.csv); write another file"
expect 2 eval run points.csv --predictions points.csv
expect 2 eval run --predictions run/config.yaml
expect 2 eval run --predictions run/events.jsonl
expect 0 eval run --predictions run/mine.csv
holds "the table was changed" cmp -s points.csv kept.csv
# The data that a model or a configuration names, and --overwrite does not help.
expect 2 eval run --predictions points.csv --overwrite
says "points.csv would replace what the command reads"
expect 2 eval run points.yaml --predictions linked.csv --overwrite
expect 2 infer run points.csv --output run/metrics.csv --overwrite
expect 2 infer run points.csv --output both.csv --probabilities ./both.csv
says "is named for two outputs"
expect 2 eval run points.csv --output . --overwrite
says ". holds what the command reads (run); write into another folder"
holds "a table was changed" cmp -s points.csv kept.csv
expect 0 export run model.safetensors
expect 0 export run old@3
sum=$(cat old-symbol.json old-0003.params | md5sum)
expect 2 export old@3 old@3
holds "an export changed the model that it read" test "$sum" = "$(cat old-symbol.json old-0003.params | md5sum)"
expect 2 tokenize points.yaml --tokenizer characters --save points.yaml --overwrite
{ echo label,text; for i in $(seq 40); do echo "$((i % 2)),word $i of $((i % 7))"; done; } >texts.csv
cp texts.csv kept_texts.csv
expect 2 init texts.csv --output texts.csv --overwrite
holds "the table was changed" cmp -s texts.csv kept_texts.csv

# --- what exists
# keeps FILE ARGUMENT...: the command writes the file, then only with --overwrite.
keeps() {
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  echo precious >"$file"
  expect 8 "$@"
  says "$file exists already; use --overwrite to replace it, or write another"
  holds "$last changed it" test "$(cat "$file")" = precious
  expect 0 "$@" --overwrite
  holds "$last did not write it" sh -c '[ -s "$1" ] && ! grep -qs precious "$1"' - "$file"
  rm "$file"
}
keeps exists/each.csv infer run points.csv --output exists/each.csv
keeps exists/scores.npy infer run points.csv --probabilities exists/scores.npy
keeps exists/layer.npy infer run points.csv --output-layer fullyconnected0 --output exists/layer.npy
keeps exists/each.csv eval run --predictions exists/each.csv
keeps exists/model.safetensors export run exists/model.safetensors
keeps exists/mx-symbol.json export run exists/mx@1
keeps exists/my-0001.params export run exists/my@1
keeps exists/curves.svg diff run run --plot exists/curves.svg
keeps exists/memory.svg plan points.yaml --plot exists/memory.svg
keeps exists/net.svg plan points.yaml --plot-net exists/net.svg
keeps exists/lr_find.svg lr-find points.yaml --out exists --steps 20
keeps man/mxtrain-train.1 help --man-dir man
keeps exists/trace.json train points.yaml --out traced -q --profile exists/trace.json
keeps exists/points.yaml init texts.csv --output exists/points.yaml
echo precious >exists/notes.txt
expect 8 eval run --output exists
says "exists is not empty; use --overwrite to replace files in it, or write into another folder"
expect 0 eval run --output exists --overwrite
holds "the folder has no tables" test -s exists/classes.csv -a "$(cat exists/notes.txt)" = precious
for _ in 1 2; do
  expect 0 eval run
  expect 0 lr-find points.yaml --steps 20
done
expect 8 infer run points.csv --output exists
says "exists is a folder; give the name of a file"
# A name of what the process has open, as /dev/stdout is, is written to, and stays.
ln -s /proc/self/fd/1 out
expect 0 infer run points.csv --format csv --output out
prints "row,"
expect 8 init texts.csv --output out
says "cannot write out: it is a stream of a process, not a file"
holds "the link was replaced by a file" test -L out
rm out
mkfifo pipe
cat pipe >piped &
expect 0 infer run points.csv --format csv --output pipe
wait $!
holds "the pipe got nothing" grep -q "row," piped

# --- names of heads: where files of an evaluation lie, and what a terminal gets
cat >two.yaml <<'END'
name: two
data: {batch_size: 8, train: {source: csv, path: two.csv, columns: {data: [a, b], kind_label: y, col_label: z}}}
net:
  input: [2]
  layers:
  - FullyConnected: {name: f1, inputs: data, num_hidden: 3}
  - SoftmaxOutput: {name: kind}
  - FullyConnected: {name: f2, inputs: data, num_hidden: 2}
  - SoftmaxOutput: {name: col}
  outputs: [kind, col]
train: {epochs: 1, optimizer: {name: sgd, lr: 0.01}}
END
{ echo a,b,y,z; for i in $(seq 60); do echo "$((i % 7)),$((i % 5)),k$((i % 3)),c$((i % 2))"; done; } >two.csv
expect 0 train two.yaml --out two -q
expect 0 export two mx@1
sed -i 's#col_label#../../victim_label#g; s#"col"#"../../victim"#g' mx-symbol.json
mkdir victim && echo precious >victim/classes.csv
expect 0 eval mx@1 two.csv --output out/ev
holds "a file elsewhere was replaced" test "$(cat victim/classes.csv)" = precious
holds "the head has no tables" test -f out/ev/.._.._victim/classes.csv
sed -i 's#"../../victim"#"a\\u001b[31mb"#g' mx-symbol.json
expect 0 eval mx@1 two.csv
holds "a terminal gets what a model's names hold" test "$(grep -c $'\033' stdout)" -eq 0

# --- what a model writes that has learnt the escapes of terminals
for i in $(seq 300); do printf '\033[31mab'; done >escapes.txt
cat >escapes.yaml <<'END'
task: language_model
net:
  input: [8]
  layers:
    - Embedding: {input_dim: "${classes}", output_dim: 16}
    - FullyConnected: {num_hidden: "${classes}", flatten: false}
    - transpose: {axes: [0, 2, 1]}
    - SoftmaxOutput: {name: softmax, multi_output: true, normalization: valid}
data: {batch_size: 16, train: {source: text, path: escapes.txt}}
train: {epochs: 20, optimizer: {name: adamw, lr: 0.05}}
END
expect 0 train escapes.yaml --out escapes -q
expect 0 generate escapes --prompt ab --temperature 0 --max-tokens 14
holds "the model did not learn escapes" grep -q $'ab\033\[31mab' stdout
if command -v script >/dev/null; then
  script -qec "'$program' generate escapes --prompt ab --temperature 0 --max-tokens 14" /dev/null >terminal 2>&1
  holds "a terminal does not get the text" grep -qF 'ab\x1b[31mab' terminal
  holds "a terminal gets the escapes of a model" test "$(grep -c $'\033\[31m' terminal)" -eq 0
fi

# --- a report of a folder from elsewhere
cp -r run theirs
echo "SECRET OF THE USER" >secret
mkdir -p theirs/eval theirs/samples
ln -s "$work/secret" theirs/samples/a.svg
ln -sf "$work/secret" theirs/env.txt
mkdir outside && cp run/plots/loss.svg outside/shown.svg && ln -s "$work/outside" theirs/eval/outside
for svg in '<svg><script>alert(1)</script></svg>' '<svg><rect width="1" onload="alert(1)"/></svg>' '<svg><image href="https://example.org/a.png"/></svg>' \
  '<svg><a><text>x</text></a></svg>' '<svg><rect fill="url(https://example.org)"/></svg>' '<svg><style>x</style></svg>' '<svg><rect width=1/></svg>'; do
  echo "$svg" >theirs/eval/x.svg
  expect 0 eval theirs points.csv
  holds "the report shows $svg" sh -c '! grep -qF "$1" theirs/report.html' - "$svg"
done
holds "the report holds what a link points to" sh -c '! grep -q SECRET theirs/report.html'
holds "the report does not name what it does not show" grep -q "x.svg is not a drawing of mxtrain" theirs/report.html
holds "the report has no curves" grep -q "<polyline" theirs/report.html

# --- texts of a run folder
for text in '' '\n' 'epoch,val_loss\n' 'a,b\n1,2\n' 'epoch,val_loss\nx,1\n' 'epoch,val_loss\n1e300,1\n' 'epoch\n-1\n' ',\n'; do
  rm -rf odd
  mkdir odd
  cp -r run odd/run
  printf "$text" >odd/run/metrics.csv
  for command in "runs odd" "runs odd --json" "runs odd --sort best --format csv" "diff odd/run run" "eval odd/run points.csv"; do
    "$program" $command >stdout 2>stderr
    code=$?
    last="mxtrain $command of a table '$text'"
    checks=$((checks + 1))
    [ $code -lt 10 ] || fail "$last: exit code $code"
  done
done
expect 0 runs odd --json
deep=$(repeated 100000 '[')$(repeated 100000 ']')
cp run/result.json result.json
printf '{"stopped": false, "x": %s}' "$deep" >odd/run/result.json
cp run/metrics.csv odd/run/metrics.csv
expect 0 runs odd
says "it is nested more than 64 deep"
# Rows of few cells under many columns take the memory of the file, not of a full table.
for columns in 1900 50000; do
  { echo "epoch$(repeated $columns ,)"; for i in $(seq 50000); do echo "$i"; done; } >odd/run/metrics.csv
  cp result.json odd/run/result.json
  (ulimit -v 1000000 && exec timeout -k 5 60 "$program" runs odd) >stdout 2>stderr
  code=$?
  holds "a table of $columns columns: exit code $code" test $code -eq 0
done
says "odd/run/metrics.csv has 50001 columns, more than the 2000 of a metrics table"
# Texts that a continued run reads.
cp -r run continued
for line in '{"event":"epoch","epoch":"x","rates":[[0,1]]}' '{"epoch":1,"rates":7}' '{"epoch":1,"rates":{"a":[]}}' '["rates"]' '{"epoch":1e300,"rates":[[1,2]]}'; do
  echo "$line" >>continued/events.jsonl
done
expect 0 train continued --extend train.epochs=1 -q
for table in 'epoch,val_loss\n1,2\n2,3\n' 'epoch,lr\n1,\n2,nan\n3,0.1\n'; do
  cp -r run drawn
  rm -f drawn/events.jsonl
  printf "$table" >drawn/metrics.csv
  expect 0 train drawn --resume -q
  rm -rf drawn
done
expect 0 train points.yaml --out watched -q 'train.monitor={pattern: "*", every: 1}'
for text in 'step\n1\n' 'step,name\n1,a\n' '1,2,3\n4,5,6\n'; do
  printf "$text" >watched/monitor.csv
  expect 0 train watched --extend train.epochs=1 -q
  says "watched/monitor.csv is not a table of train.monitor"
done
for text in '[]' '{"images_per_second": "a"}' '{"best": {}}' '{"steps": null, "total_steps": 1}' '{"peak_memory_bytes": 1e300, "last": 7}'; do
  echo "$text" >odd/run/result.json
  cp run/metrics.csv odd/run/metrics.csv
  expect 0 eval odd/run points.csv
done
cp result.json odd/run/result.json
mkdir bundle
printf '{"threads": 1, "step": %s}' "$deep" >bundle/bundle.json
bounded 4 replay bundle
says "it is nested more than 64 deep"

# --- files of weights, and rules of names
safetensors deep.safetensors "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4],\"shape\":$deep}}"
bounded 4 train points.yaml --out u train.weights.file=deep.safetensors
says "it is nested more than 64 deep"
safetensors long.safetensors "{\"layer1.$(repeated 100000 1).conv1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
for net in resnet18 mobilenet_v2; do
  "$helper" images photos 4
  timeout -k 5 60 "$program" init photos --net $net --weights long.safetensors --output u.yaml >stdout 2>stderr
  holds "a long name of an array ends the program" test $? -lt 10
done
safetensors name.safetensors "{\"$(repeated 40 a)b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
echo "- ['^(a+)+\$', x]" >slow.yaml
echo "- ['$(repeated 50000 '(')a$(repeated 50000 ')')', x]" >nested.yaml
printf -- "- ['(a)', '%s']\n- ['(.*)', x]\n" "$(repeated 90000 '$1')" >grows.yaml
for map in slow nested grows; do
  timeout -k 5 20 "$program" train points.yaml --out u -q train.weights.file=name.safetensors train.weights.map=$map.yaml >stdout 2>stderr
  code=$?
  holds "the rules of $map.yaml: exit code $code" test $code -eq 3 -o $code -eq 4
done

# --- files that include one another, plug-ins that are none, folders with the form of an expression
for i in $(seq 0 14); do echo "include: [x$((i + 1)).yaml, x$((i + 1)).yaml, x$((i + 1)).yaml]" >x$i.yaml; done
{ printf 'vars: {'; for i in $(seq 15000); do printf 'a%d: %d, ' "$i" "$i"; done; echo 'b: 1}'; } >x15.yaml
bounded 3 check x0.yaml
says "included files have more than 4194304 bytes together"
mkfifo pipe.so
bounded 3 check points.yaml --plugin pipe.so
says "pipe.so: it is not a regular file"
mkdir 'pay ${HOME}' && cp -r photos 'pay ${HOME}/photos'
expect 0 init 'pay ${HOME}/photos' --output pay.yaml
expect 0 train pay.yaml --out pay train.epochs=1 -q
expect 0 train pay --extend train.epochs=1 -q
expect 0 eval pay

bounded 2 sweep points.yaml 'train.optimizer.lr=0.001..1' --random 1000000000 --out endless
says "1000000000 trials are more than a sweep makes, 10000"
printf '{"threads": 1000000000, "step": 3}' >bundle/bundle.json
bounded 4 replay bundle

# --- many classes
{ echo a,b,y; for i in $(seq 1500); do echo "$((i % 7)),$((i % 5)),w$i"; done; } >many.csv
sed -e 's/path: two.csv.*/path: many.csv, columns: {data: [a, b], softmaxoutput0_label: y}}}/' -e '/^net:/,$d' two.yaml >many.yaml
cat >>many.yaml <<'END'
net: {input: [2], layers: [{FullyConnected: {num_hidden: 1500}}, {SoftmaxOutput: {}}]}
train: {epochs: 1, max_steps: 2, optimizer: {name: sgd, lr: 0.01}}
END
expect 0 train many.yaml --out many -q
expect 0 eval many many.csv --output evaluated
prints accuracy
holds "the pairs of classes are not written" test "$(head -1 evaluated/confusion.csv)" = true,predicted,examples
holds "the pairs do not count every example" test "$(awk -F, 'NR > 1 { n += $3 } END { print n }' evaluated/confusion.csv)" -eq 1500

# --- an extension that is killed is what --resume continues; one that diverges is repeated
cp -r run night
MXTRAIN_STEP_DELAY_MS=500 "$program" train night --extend train.epochs=3 -q >stdout 2>stderr &
extension=$!
for _ in $(seq 300); do [ -f night/result.json ] || break; sleep 0.1; done
kill -KILL $extension
wait $extension 2>/dev/null
expect 0 train night --resume -q
holds "the extension was forgotten" test "$(tail -1 night/metrics.csv | cut -d, -f1)" -eq 5
write_deep
expect 0 train deep.yaml --out apart -q
expect 7 train apart --extend train.epochs=1 train.optimizer.lr=1e30 -q
expect 0 replay "$(ls -d apart/diverged-*)" --json
holds "the repeated step does not diverge" grep -q '"tensor":"[^"]' stdout

# --- limits of the process
for kilobytes in 150000 250000 300000 350000 400000 450000 500000; do
  (ulimit -v $kilobytes && exec timeout -k 5 60 "$program" train points.yaml --out limited --overwrite -q) >stdout 2>stderr
  code=$?
  holds "under $kilobytes KiB of address space: exit code $code" test $code -lt 11 -o $code -eq 127
done
write_photos photos photos 4
expect 0 train photos.yaml --out of_photos -q
for files in 12 16 20 24; do
  (ulimit -n $files && exec "$program" infer of_photos photos --skip-bad --format csv) >stdout 2>stderr
  code=$?
  holds "with $files open files: exit code $code, $(wc -l <stdout) lines" test $code -eq 6 -o $code -eq 127 -o $code -eq 8 -o \( $code -eq 0 -a "$(wc -l <stdout)" -eq 9 \)
done
finish
