#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Weights at an address, from a server on 127.0.0.1: what is downloaded, continued, checked and refused. Without python3, libcurl, or in a
# build without downloads the test ends with 77, which ctest shows as skipped.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"
python=$(command -v python3 || true)
if [ -z "$python" ]; then
  echo "skipped: no python3"
  exit 77
fi
unset MXTRAIN_CACHE_DIR MXTRAIN_OFFLINE MXTRAIN_MAX_DOWNLOAD XDG_CACHE_HOME http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
export HOME=$work/home no_proxy=127.0.0.1
mkdir home
write_points
expect 0 train points.yaml --out first -q
expect 0 export first weights.safetensors
mv weights.safetensors weights

"$program" train points.yaml --dry-run train.weights=http://127.0.0.1:1/weights 2>stderr
if grep -qE "built without downloads|libcurl, which cannot be opened" stderr; then
  echo "skipped: $(tail -1 stderr)"
  exit 77
fi
"$python" "$source_dir/tests/cli/download_server.py" port requests &
server=$!
trap 'kill $server; chmod -R u+w "$work"; rm -rf "$work"' EXIT
wait_for port
at=http://127.0.0.1:$(cat port)
sum=$(sha256sum weights | cut -d' ' -f1)
size=$(stat -c %s weights)
wrong=$(printf '%064d' 7)
requests() { [ -e requests ] && wc -l <requests || echo 0; }

# take FILE [ARGUMENT...]: a run from these weights, that takes no step.
take() {
  local file=$1
  shift
  expect 0 train points.yaml --out run --overwrite train.epochs=0 train.weights.file="$file" "$@"
  says "weights of $file: 2 arrays taken"
}
# fails CODE FILE TEXT [ARGUMENT...]
fails() {
  local code=$1 file=$2 text=$3
  shift 3
  expect "$code" train points.yaml --out refused train.epochs=0 train.weights.file="$file" "$@"
  says "$text"
  holds "a refused download left a run" test ! -e refused
}
cached() { find "$1" -type f -name '*.safetensors' 2>/dev/null; }
parts() { find "$1" -name '*.part*' | wc -l; }

# --- downloaded once, said beforehand with its size; the default folder
take $at/folder/good.safetensors
says "downloading $at/folder/good.safetensors ($(awk -v n="$size" 'BEGIN {if (n < 1024) printf "%d B", n; else {t = sprintf("%.2f", n / 1024); sub(/\.?0+$/, "", t); print t " KiB"}}')) to $work/home/.cache/mxtrain/weights/"
says "its SHA-256 is $sum; train.weights.sha256=$sum refuses any other file"
holds "the file in the cache differs" cmp -s weights "$(cached home/.cache/mxtrain)"
holds "parts are left" test "$(parts home)" -eq 0
before=$(requests)
take $at/folder/good.safetensors
holds "it was asked for again" test "$(requests)" -eq "$before"
holds "it is said to be downloaded" sh -c '! grep -q downloading stderr'
take $at/folder/good.safetensors --offline
holds "the run's configuration lacks the address" grep -qF "$at/folder/good.safetensors" run/config.yaml
fails 8 $at/other/good.safetensors "is not in the cache ($work/home/.cache/mxtrain), and --offline forbids to download it" --offline
MXTRAIN_OFFLINE=1 fails 8 $at/other/good.safetensors "--offline forbids"
holds "offline it was asked for" test "$(requests)" -eq "$before"

# --- the folder, by flag, variable and XDG
take $at/folder/good.safetensors --cache-dir mine
holds "--cache-dir is not used" test -n "$(cached mine)"
MXTRAIN_CACHE_DIR=$work/variable take $at/folder/good.safetensors
holds "MXTRAIN_CACHE_DIR is not used" test -n "$(cached variable)"
XDG_CACHE_HOME=$work/xdg take $at/folder/good.safetensors
holds "XDG_CACHE_HOME is not used" test -n "$(cached xdg/mxtrain)"

# --- names that are hidden or long are files of their own; a part that nobody asked for is none
cp weights first.other
expect 0 train points.yaml --out second -q --seed 9
expect 0 export second weights.safetensors --overwrite
mv weights.safetensors second.other
long=$(printf '%0150d' 0)
for names in ".first.safetensors .second.safetensors" "first$long second$long" "first$long.safetensors second$long.safetensors" "first.part second.part"; do
  for name in $names; do
    take "$at/named/$name"
    expect 0 export run taken.safetensors --overwrite
    cp taken.safetensors "taken_${name:0:3}"
  done
  set -- $names
  holds "$1 and $2 are one file in the cache" sh -c '! cmp -s "$@"' - "taken_${1:0:3}" "taken_${2:0:3}"
done
fails 8 $at/half.safetensors "the server sends a part of it, and the whole file was asked for"
holds "half of a file is kept" test -z "$(find home -name 'half*')"

# --- redirects, to https or this machine alone; the hub
take $at/redirect.safetensors
fails 8 $at/loop "the server redirects more than 10 times"
fails 8 $at/away "leads to 'http://192.0.2.1/weights', which is not an address of https"
fails 8 $at/file "leads to 'file:///etc/passwd', which is not an address of https"
HF_ENDPOINT=$at take hf://owner/repo/good.safetensors
holds "the hub was asked for another path" grep -q "^GET /owner/repo/resolve/main/good.safetensors " requests
HF_ENDPOINT=$at take hf://owner/repo@v2/folder/good.safetensors
holds "the hub was asked for another revision" grep -q "^GET /owner/repo/resolve/v2/folder/good.safetensors " requests

# --- broken off: continued at once, and by the next call; what has changed begins again
take $at/once.safetensors
holds "the rest was not asked for" grep -q "^GET /once.safetensors bytes=$((size / 2))- \"v1\"\$" requests
fails 8 $at/always.safetensors "cannot download $at/always.safetensors: "
says " B have come, the next call continues there"
had=$(stat -c %s "$(find home -name 'always.safetensors.part')")
holds "nothing is kept of a broken download" test "$had" -ge 10
expect 8 train points.yaml --dry-run train.weights.file=$at/always.safetensors
holds "the next call does not continue" grep -q "^GET /always.safetensors bytes=$had- \"v1\"\$" requests
take $at/changed.safetensors
holds "two versions were mixed" cmp -s weights "$(find home -name changed.safetensors)"
take $at/plain.safetensors
holds "what cannot be continued is damaged" cmp -s weights "$(find home -name plain.safetensors)"
take $at/chunks.safetensors
holds "a rest that ended early is taken for the whole rest" cmp -s weights "$(find home -name chunks.safetensors)"
fails 8 $at/never.safetensors "cannot download $at/never.safetensors: "
holds "a part of no version is said to be continued" bash -c '! grep -q "the next call continues" stderr'
fails 8 $at/shifted.safetensors "the server sends another part of it"

# --- nothing is missing of what has come, or too much has come
mkdir -p parts
plant() {  # plant NAME FILE: as if a call had been broken off before it could give the file its name
  local folder
  folder=$(dirname "$(find home -name once.safetensors)")
  cp "$2" "$folder/$1.part"
  printf '{"url": "%s", "validator": "\\"v1\\""}' "$at/$1" >"$folder/$1.part.json"
}
plant complete.safetensors weights
take $at/complete.safetensors
holds "a complete part was fetched again" test "$(grep -c "^GET /complete.safetensors " requests)" -eq 1
cat weights weights >twice
plant shorter.safetensors twice
take $at/shorter.safetensors
holds "the file is not the server's" cmp -s weights "$(find home -name shorter.safetensors)"
take $at/strange.safetensors
fails 4 $at/page.safetensors "is a page for people to read (text/html), not a file of weights"

# --- a signal ends the transfer, or the wait for another process, and keeps what has come
"$program" train points.yaml --out slow train.epochs=0 train.weights.file=$at/slow.safetensors 2>slow.txt &
first=$!
until [ -n "$(find home -name slow.safetensors.part -size +0)" ]; do sleep 0.05; done
"$program" train points.yaml --out waits train.epochs=0 train.weights.file=$at/slow.safetensors 2>waits.txt &
second=$!
until grep -q "waiting for it" waits.txt; do sleep 0.05; done
kill -TERM $second
wait $second
holds "a process that waits does not heed TERM" test $? -eq 143
kill -TERM $first
wait $first
holds "TERM in a transfer does not end it with 143" test $? -eq 143
holds "TERM lost what had come" test -n "$(find home -name slow.safetensors.part -size +0)"
holds "a stopped download is an error" grep -q "was stopped; .* have come, the next call continues there" slow.txt
"$program" verify-resume points.yaml --steps 4 train.weights.file=$at/slow3.safetensors 2>slow.txt &
first=$!
until [ -n "$(find home -name slow3.safetensors.part -size +0)" ]; do sleep 0.05; done
kill -TERM $first
wait $first
holds "TERM in the download of verify-resume does not end it with 143" test $? -eq 143
take $at/slow.safetensors
for i in 1 2; do
  "$program" train points.yaml --out both$i train.epochs=0 train.weights.file=$at/slow2.safetensors 2>both$i.txt &
  eval "both$i=\$!"
done
until cat both1.txt both2.txt | grep -q "waiting for it"; do sleep 0.05; done
touch go
wait $both1
holds "the first of two runs failed" test $? -eq 0
wait $both2
holds "the second of two runs failed" test $? -eq 0
holds "two runs downloaded the same file" test "$(grep -c "^GET /slow2.safetensors " requests)" -eq 1

# --- a cache that may only be read serves; this machine needs no proxy
cp -r home/.cache/mxtrain shared
find shared -name .lock -delete
take $at/folder/good.safetensors --cache-dir shared --offline
take $at/folder/good.safetensors --cache-dir shared
holds "a hit locks the cache" test -z "$(find shared -name .lock)"
no_proxy= http_proxy=http://127.0.0.1:1 take $at/folder/good.safetensors --cache-dir by_proxy

# --- pinned
take $at/pinned/good.safetensors train.weights.sha256=$sum
holds "the run's configuration lacks the sum" grep -qF "good.safetensors#sha256=$sum" run/config.yaml
expect 0 train run/config.yaml --out again
take "$at/short/good.safetensors" "train.weights.sha256=$(tr a-f A-F <<<$sum)"
count=$(cached home | wc -l)
fails 4 $at/wrong/good.safetensors "has the SHA-256 $sum, but train.weights.sha256 is $wrong" "train.weights.sha256='$wrong'"
holds "a wrong file is in the cache" test "$(cached home | wc -l)" -eq "$count"
take $at/folder/good.safetensors --cache-dir pins
fails 4 $at/folder/good.safetensors "has the SHA-256 $sum, but train.weights.sha256 is $wrong" "train.weights.sha256='$wrong'" --cache-dir pins
holds "a wrong pin destroyed a good file in the cache" cmp -s weights "$(cached pins)"
expect 0 train points.yaml --dry-run train.weights=$at/folder/good.safetensors train.weights.sha256=$sum
fails 3 $at/folder/good.safetensors "is not a SHA-256: expected 64 hexadecimal digits" train.weights.sha256=abc
for file in $(cached home/.cache/mxtrain | grep /good); do echo damaged >>"$file"; done
take $at/pinned/good.safetensors train.weights.sha256=$sum
says "in the cache has another SHA-256"
cp weights local.safetensors
expect 0 train points.yaml --out run --overwrite train.epochs=0 train.weights.file=local.safetensors train.weights.sha256=$sum
expect 4 train points.yaml --dry-run train.weights.file=local.safetensors "train.weights.sha256='$wrong'"
says "local.safetensors has the SHA-256 $sum, but train.weights.sha256 is $wrong"

# --- an index, with the files that it lists beside it
names=$(grep -aoE '"fullyconnected0_(weight|bias)"' weights | sort -u | paste -sd' ')
for name in $names; do echo "$name: \"good.safetensors\""; done | paste -sd, | sed 's/.*/{"weight_map": {&}}/' >index
take $at/several/net.safetensors.index.json
says "downloading $at/several/good.safetensors ("
take $at/several/net.safetensors.index.json --offline
echo '{"weight_map": {"a": "../good.safetensors"}}' >index
fails 4 "$at/several/net.safetensors.index.json?new" "which is not the name of a .safetensors file in the same folder"

# --- refused
fails 4 $at/junk.safetensors "(in the cache, from $at/junk.safetensors; remove it there to download it again)"
fails 4 $at/large.safetensors "has 931.3 GiB; at most 4 GiB are downloaded (--max-download)"
fails 4 $at/endless.safetensors "has more than 1000 B; at most 1000 B are downloaded" --max-download 1000
holds "more than allowed is kept" test -z "$(find home -name 'endless*' -size +0)"
plant_partly=$(find home -name always.safetensors.part)
had=$(stat -c %s "$plant_partly")
fails 4 $at/always.safetensors "at most 5 B are downloaded" --max-download 5
holds "a smaller limit destroyed what had come" test "$(stat -c %s "$plant_partly")" -ge "$had"
fails 8 $at/gone.safetensors "the server has no such file (404)"
fails 8 $at/closed "the server refuses access (403)"
fails 8 http://127.0.0.1:1/none.safetensors "cannot download http://127.0.0.1:1/none.safetensors: "
fails 3 http://example.org/weights.pth "use https (http is for this machine alone)"
fails 3 s3://bucket/weights.pth "neither a path nor an address that begins with https:// or hf://"
fails 3 hf://owner/repo "expected hf://OWNER/REPO/FILE"
expect 2 train points.yaml --max-download lots
says "--max-download 'lots' is not a size"

finish
