#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Malicious folders and exhausted machines: no file of others is touched, nothing hangs, and errors are reported.
. "$(dirname "$0")/common.sh"
real=$program
printf '#!/bin/sh\nexec timeout -k 5 100 "%s" "$@"\n' "$real" >guarded
chmod +x guarded
program=$work/guarded
"$helper" images photos 4
write_photos photos photos 4
expect 0 train photos.yaml --out run -q

# --- pipes, devices and endless files among images
mkfifo photos/dark/pipe.png
ln -s /dev/zero photos/light/zero.png
truncate -s 1T photos/light/sparse.png
expect 4 infer run photos --format csv
says "warning: cannot read photos/dark/pipe.png: it is a pipe, not a regular file"
says "warning: cannot read photos/light/zero.png: it is a device, not a regular file"
says "photos/light/sparse.png has more than 268435456 bytes, the limit for reading"
holds "the good images have no lines" test "$(wc -l <stdout)" -eq 9
expect 0 infer run photos --format csv --skip-bad
expect 4 check photos.yaml
says "photos/dark/pipe.png"
rm photos/dark/pipe.png photos/light/zero.png photos/light/sparse.png

# --- as models, weights and parts of a configuration; a list that is a pipe is what it was named for
mkfifo pipe pipe.safetensors list.txt
expect 8 eval pipe photos
says "cannot read pipe: it is a pipe, not a regular file"
expect 8 eval /dev/zero photos
says "cannot read /dev/zero: it is a device, not a regular file"
expect 8 train photos.yaml train.weights.file=pipe.safetensors --out unmade
says "pipe.safetensors: it is a pipe"
echo 'include: [photos.yaml, pipe]' >including.yaml
expect 3 train including.yaml
says "cannot read the included file 'pipe'"
ls photos/*/*.png >list.txt &
expect 0 infer run list.txt --format csv
holds "a list through a pipe gives its images" test "$(wc -l <stdout)" -eq 9
expect 8 train photos.yaml --profile /dev/null --out unmade
says "cannot write /dev/null: it is a device, not a regular file"
holds "/dev/null is a file now" test -c /dev/null

# --- links at every name of a run folder point to files of others
mkdir -p theirs/folder
guard() {
  for name in file folder/last folder/best folder/previous folder/epoch-0001 folder/report.json; do echo precious >theirs/$name; done
}
untouched() {
  holds "$1: a file of others was changed" test "$(cat theirs/file theirs/folder/* | sort -u)" = precious
  holds "$1: files were put into a folder of others" test "$(ls theirs theirs/folder | wc -l)" -eq 10
}
# survives MESSAGE COMMAND...: 0 or 8, no file of others touched.
survives() {
  local message=$1
  shift
  "$program" "$@" >stdout 2>stderr
  local code=$?
  last="mxtrain $*"
  checks=$((checks + 1))
  [ $code -eq 0 ] || [ $code -eq 8 ] || fail "$message: exit code $code"
  [ $code -eq 0 ] || [ -s stderr ] || fail "$message: exit code $code without a word"
  untouched "$message"
}
guard
folders="checkpoints tb plots samples eval"
for name in .lock config.yaml origin.txt command.txt env.txt mxtrain.log metrics.csv events.jsonl result.json report.html checkpoints/last checkpoints/last.new \
  checkpoints/previous checkpoints/best.new plots/metrics.svg samples/train_batch.png eval/report.json $folders; do
  target=$work/theirs/file
  case " $folders " in *" $name "*) target=$work/theirs/folder ;; esac
  for how in link pipe; do
    rm -rf hostile
    cp -r run hostile
    rm -rf "hostile/$name"
    mkdir -p "$(dirname "hostile/$name")"
    if [ $how = link ]; then ln -s "$target" "hostile/$name"; else mkfifo "hostile/$name"; fi
    case $name in
      eval*) survives "a $how at $name, eval" eval hostile photos ;;
      *) [ $name$how = checkpoints/lastlink ] || survives "a $how at $name, resumed" train photos.yaml --out hostile --resume train.epochs=2 -q ;;
    esac
    survives "a $how at $name, overwritten" train photos.yaml --out hostile --overwrite -q
  done
done
# A second name of another's file: what the run adds goes into a copy.
for name in .lock mxtrain.log events.jsonl metrics.csv; do
  rm -rf hostile
  cp -r run hostile
  ln -f theirs/file hostile/$name
  survives "a hard link at $name" train photos.yaml --out hostile --resume train.epochs=2 -q
done
# The names of temporary files are predictable.
rm -rf hostile
cp -r run hostile
(
  for name in config.yaml metrics.csv result.json report.html checkpoints/last.new; do ln -s "$work/theirs/file" hostile/$name.tmp-$BASHPID; done
  exec "$real" train photos.yaml --out hostile --resume train.epochs=2 -q
) 2>stderr
holds "links at temporary names prevent a run from continuing: $(cat stderr)" test $? -eq 0
untouched "links beside files"

# --- names
expect 3 train photos.yaml name=../../x
says "invalid run name: it names a single folder and must not contain '/'"
expect 2 train photos.yaml --name ../x
says "--name: invalid run name"
expect 3 train photos.yaml "name=$(printf '%300s' | tr ' ' n)"
says "it is longer than 200 bytes"
printf 'include: photos.yaml\nname: "a\\0b"\n' >nul.yaml
expect 3 train nul.yaml
says "it contains a control character"
# --- control characters of configurations and command lines do not reach the terminal
no_controls() { ! LC_ALL=C grep -q "$(printf '[\033\a\r]\|\302\233\|\342\200\256')" stderr; }
while read -r text; do
  printf '%s\n' "$text" >esc.yaml
  expect 3 check esc.yaml
  holds "a message obeys $text" no_controls
done <<'END'
{include: photos.yaml, "se\e[31m\a\rd": 1}
{include: photos.yaml, net: {layers: ["Fla\e[31m\r\u202e"]}}
{include: photos.yaml, net: {layers: [{Activation: {act_type: "\e]0;x\a\u009b31m"}}]}}
{include: ["nope\e\u009b"]}
END
printf 'include: photos.yaml\nseed: "${HOSTILE}"\n' >esc.yaml
HOSTILE=$'\e[31m\a' expect 3 check esc.yaml
holds "a message obeys an environment variable" no_controls
for word in $'tr\e[31m\a' $'tr\302\23331m' $'tr\342\200\256x'; do
  expect 2 "$word"
  holds "a message obeys a command's name" no_controls
  expect 2 train photos.yaml "--$word"
  holds "a message obeys a flag" no_controls
  expect 3 check photos.yaml "$word=1"
  holds "a message obeys an override" no_controls
  expect 2 help "$word"
  holds "a message obeys a topic" no_controls
done
expect 2 $'one\nerror: two'
holds "a command's name begins a line" test "$(wc -l <stderr)" -eq 1
expect 2 help $'one\nerror: two'
holds "a topic begins a line" test "$(wc -l <stderr)" -eq 1
printf 'include: photos.yaml\ndata: {train: {path: "photos\\0x"}}\n' >nul.yaml
expect 3 train nul.yaml
says "a path, which cannot contain NUL"
holds "a run was made outside of runs/" test ! -e ../x-0001 -a ! -e ../../x-0001
mkdir -p classes
for name in 'a=b' $'new\nline' $'\e[31mred'; do cp -r photos/dark "classes/$name"; done
write_photos classes classes 4
mv photos.yaml classes.yaml
expect 0 train classes.yaml --out classes-run -q
expect 0 infer classes-run classes --copy-to sorted
# A class name that no model could store is refused at the start, also by check and init.
cp -r classes unnamed && mv unnamed/a=b unnamed/$'caf\351'
sed 's/path: classes/path: unnamed/' classes.yaml >unnamed.yaml
for command in "train unnamed.yaml --out unmade" "check unnamed.yaml" "init unnamed --output unmade.yaml"; do
  # shellcheck disable=SC2086 # words
  expect 4 $command
  says "unnamed: the class name 'caf\xe9' is not UTF-8"
done
holds "a run was made of it" test ! -e unmade -a ! -e unmade.yaml
long=$(printf '%300s' | tr ' ' n)
count=0
for image in photos/*/*.png; do printf '%s\t%s\n' "$image" "$long$((++count % 2))"; done >long.lst
sed '/  val:/d; s/train: {source: image_folder, path: classes,/train: {source: list, path: long.lst,/' classes.yaml >long.yaml
expect 0 train long.yaml --out long -q
expect 0 infer long photos --copy-to long-sorted
holds "the images of classes with long names were not sorted" test "$(find long-sorted -name '*.png' | wc -l)" -ge 4

# --- a folder called latest, and a beginning that was killed
mkdir -p runs/latest
expect 0 train classes.yaml -q
holds "something is left beside runs/latest: $(ls -A runs)" test "$(ls -A runs | wc -l)" -eq 2
mkdir -p begun/checkpoints
touch begun/.lock
expect 0 train classes.yaml --out begun --resume --or-begin -q

# --- thread creation fails from the first, second, ... thread on; files that may not grow
# without_thread AT COMMAND...: one (AT) or all from one on (AT+) of its threads cannot be created; sets code.
without_thread() {
  last="mxtrain ${*:2} without thread $1"
  FAULTS_BELOW=$work FAULTS_LOG=/dev/null FAULTS_ONLY=t FAULTS_AT=$1 FAULTS_KIND=EAGAIN GOMP_SPINCOUNT=1000 LD_PRELOAD=$faults \
    "$real" "${@:2}" -q --threads 2 data.workers=3 >stdout 2>stderr
  code=$?
  checks=$((checks + 1))
  [ $code -eq 0 ] && return
  [ $code -eq 6 ] || fail "$last: exit code $code, expected 6"
  says "Resource temporarily unavailable"
  says "raise the limit"
}
for at in 1 2 3 4 5 6 7 8; do
  without_thread $at+ train classes.yaml --out "threads$at"
  [ $code -eq 0 ] && break
done
holds "a run needs no thread" test $at -gt 1
# One of them is OpenMP's, whose runtime ends the process.
ended=
for at in 1 2 3 4 5 6 7 8; do
  without_thread $at check classes.yaml
  if grep -q "^libgomp: Thread creation failed" stderr; then ended=$code; fi
done
holds "OpenMP's end has the exit code '$ended'" test "$ended" = 6
(
  ulimit -f 1
  exec "$real" train classes.yaml --out limited -q >/dev/null 2>"$work/limited.txt"
)
code=$?
holds "a limit on the size of files: exit code $code, expected 8" test $code -eq 8
holds "a limit on the size of files is not reported: $(cat limited.txt)" grep -q "File too large; the file size limit was reached (ulimit -f, or that of the file system); raise it" limited.txt

# --- memory runs out: in reading a table, and in the arrays of a net; a sanitizer's program does not start within the limit
write_points
{ echo a,b,c,y && yes 1,2,3,0 | head -n 9000000; } >large.csv
# within_memory ARGUMENT...: in 500 MB.
within_memory() {
  last="mxtrain $* in 500 MB"
  (
    ulimit -v 500000
    GOMP_SPINCOUNT=1000 exec "$real" "$@" -q --threads 2 >stdout 2>stderr
  )
  code=$?
}
within_memory check points.yaml
if [ $code -eq 0 ]; then
  within_memory check points.yaml data.train.path=large.csv
  holds "a table without memory: exit code $code, expected 6" test $code -eq 6
  says "error: out of memory, after "
  says "MiB were taken; lower data.batch_size, or raise the limit (ulimit -v, or that of the container)"
  within_memory train points.yaml 'net.layers=[{FullyConnected: {num_hidden: 200000000}}, {SoftmaxOutput: {name: softmax}}]' --out unmade
  holds "a net without memory: exit code $code, expected 6" test $code -eq 6
  says "out of memory"
fi
finish
