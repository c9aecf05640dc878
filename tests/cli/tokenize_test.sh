#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `mxtrain tokenize` that is killed (SIGKILL) and repeated writes the file of one that was not, on any number of CPUs; other work is refused.
#   tokenize_test.sh [MEGABYTES]    default 24
. "$(dirname "$0")/common.sh"
megabytes=${1:-24}
export MXTRAIN_STEP_DELAY_MS=100 # for each megabyte

mkdir -p corpus
for part in 1 2 3; do
  awk -v bytes=$((megabytes * 250000)) -v part=$part 'BEGIN { while (n < bytes) { s = sprintf("%d of %d sheep, and %s more.\n", ++i * part, i % 977, i % 7 ? "some" : "no"); printf "%s", s; n += length(s) } }' >corpus/$part.txt
done
awk -v bytes=$((megabytes * 125000)) 'BEGIN { while (n < bytes) { s = sprintf("{\"text\": \"row %d, %d cows\"}\n", ++i, i % 31); printf "%s", s; n += length(s) } }' >rows.jsonl
request=(tokenize corpus rows.jsonl --train 600)
milliseconds() { date +%s%3N; }
begin=$(milliseconds)
expect 0 "${request[@]}" --save whole.json --output whole.tokens
took=$(($(milliseconds) - begin))
cp stdout whole.out
expect 0 tokenize --verify whole.tokens

# killed TENTHS CPUS: the same command, killed after so many tenths of what a whole run takes, if it still runs.
kills=0 continued=0
killed() {
  taskset -c "0-$(($2 - 1))" "$program" "${request[@]}" --save killed.json --output killed.tokens >killed.out 2>killed.err &
  local pid=$!
  sleep "$(awk -v ms=$((took * $1 / 10)) 'BEGIN { print ms / 1000 }')"
  kill -9 $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
  grep -q "is continued behind [1-9]" killed.err && continued=$((continued + 1))
}
cpus=$(nproc)
for ((i = 0; i < 60; ++i)); do
  [ -e killed.tokens ] && break
  killed $((i % 4 * 3 + 1)) $((i % cpus + 1))
done
holds "after $i attempts there are no tokens: $(cat killed.err)" test -e killed.tokens
holds "nothing was killed" test "$kills" -ge 1
holds "nothing was continued; a whole run takes $took ms" test "$continued" -ge 1
holds "killed and repeated, the tokens are others" cmp -s killed.tokens whole.tokens
holds "killed and repeated, the tokenizer is another" cmp -s killed.json whole.json
holds "killed and repeated, the report is another: $(cat killed.out)" cmp -s <(sed 's/killed/whole/' killed.out) whole.out
holds "something is left beside the tokens: $(ls)" bash -c '! ls | grep -q "partial\|journal\|tmp-"'

# --- what was begun is not written over
begin_again() {
  rm -f begun.tokens* begun.json
  "$program" "${request[@]}" --save begun.json --output begun.tokens >/dev/null 2>&1 &
  local pid=$!
  for ((i = 0; i < 3000; ++i)); do [ -s begun.tokens.journal ] && break; sleep 0.01; done
  sleep 0.3
  kill -9 $pid
  wait $pid 2>/dev/null
}
begin_again
holds "nothing is left of what was begun" test -e begun.tokens.partial -a ! -e begun.tokens
expect 4 tokenize --verify begun.tokens.partial
says "begun.tokens.partial is unfinished; repeat the command that writes begun.tokens"
expect 8 tokenize corpus rows.jsonl --train 601 --output begun.tokens
says "begun.tokens.partial holds the beginning of other tokens: it was --train 600 then; "
says "use --overwrite to begin again"
expect 8 tokenize corpus rows.jsonl --output begun.tokens
says "it was --train 600 then"
expect 8 tokenize corpus --train 600 --output begun.tokens
says "rows.jsonl was read then"
expect 8 tokenize rows.jsonl corpus --train 600 --output begun.tokens
says "rows.jsonl was corpus/1.txt then"
expect 8 tokenize corpus rows.jsonl --column body --train 600 --output begun.tokens
says "it was --column text then"
cp corpus/2.txt saved.txt
printf X | dd of=corpus/2.txt bs=1 seek=5000 conv=notrunc 2>/dev/null
touch -r saved.txt corpus/2.txt
expect 8 "${request[@]}" --save begun.json --output begun.tokens
says "corpus/2.txt was changed since; it cannot be continued: use --overwrite to begin again"
holds "what was begun is gone" test -s begun.tokens.partial
cp saved.txt corpus/2.txt
expect 0 "${request[@]}" --save begun.json --output begun.tokens
says "begun.tokens is continued behind"
holds "continued after refusals, the tokens are others" cmp -s begun.tokens whole.tokens
expect 8 "${request[@]}" --output begun.tokens
says "begun.tokens exists already"

begin_again
expect 0 tokenize corpus --output begun.tokens --overwrite
expect 0 tokenize corpus --output bytes.tokens
holds "begun again, the tokens are others" cmp -s begun.tokens bytes.tokens
holds "something is left beside the tokens: $(ls)" bash -c '! ls | grep -q "partial\|journal\|tmp-"'

# --- a tokenizer's file that was changed; one process at a time; texts that cannot be encoded leave nothing
cp whole.json tokenizer.json
request=(tokenize corpus rows.jsonl --tokenizer tokenizer.json)
begin_again
sed 's/"version"/"Version"/' whole.json >tokenizer.json
expect 8 "${request[@]}" --output begun.tokens
says "tokenizer.json was changed since"
cp whole.json tokenizer.json
flock begun.tokens.journal "$program" "${request[@]}" --output begun.tokens >stdout 2>stderr
last="a second process"
says "another process is writing begun.tokens"
expect 0 "${request[@]}" --output begun.tokens
holds "by a tokenizer's file the tokens are others" cmp -s begun.tokens whole.tokens
printf 'a\n' >one.txt
printf 'b\n' >two.txt
expect 0 tokenize one.txt --tokenizer words --output one.tokens
head -c 100 /dev/urandom >odd.jsonl
expect 4 tokenize one.txt odd.jsonl --output odd.tokens
holds "texts that cannot be read leave something: $(ls)" bash -c '! ls | grep -q "^odd.tokens"'
finish
