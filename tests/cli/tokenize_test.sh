#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `mxtrain tokenize` that is killed (SIGKILL) and repeated writes the file of one that was not, on any number of threads; other work is refused.
#   tokenize_test.sh [MEGABYTES]    default 24
. "$(dirname "$0")/common.sh"
megabytes=${1:-24}

mkdir -p corpus
for part in 1 2 3; do
  awk -v bytes=$((megabytes * 1000000 / 4)) -v part=$part 'BEGIN { while (n < bytes) { s = sprintf("%d of %d sheep, and %s more.\n", ++i * part, i % 977, i % 7 ? "some" : "no"); printf "%s", s; n += length(s) } }' >corpus/$part.txt
done
awk -v bytes=$((megabytes * 1000000 / 8)) 'BEGIN { while (n < bytes) { s = sprintf("{\"text\": \"row %d, %d cows\"}\n", ++i, i % 31); printf "%s", s; n += length(s) } }' >rows.jsonl
request=(tokenize corpus rows.jsonl --train 600)
expect 0 "${request[@]}" --save whole.json --output whole.tokens
cp stdout whole.out

# killed AFTER THREADS: the same command, killed AFTER seconds if it still runs; counts these, and those that continued.
kills=0 continued=0
killed() {
  OMP_NUM_THREADS=$2 taskset -c 0-$(($2 - 1)) "$program" "${request[@]}" --save killed.json --output killed.tokens >killed.out 2>killed.err &
  local pid=$!
  sleep "$1"
  kill -9 $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
  grep -q "is continued behind" killed.err && continued=$((continued + 1))
  [ ! -e killed.tokens ] || return 1
}
cpus=$(nproc)
for ((i = 0; i < 40; ++i)); do
  killed "$(awk -v i=$i 'BEGIN { print 0.4 + i % 5 * 0.45 }')" $((i % cpus + 1)) || break
  [ -e killed.tokens.partial ] && after=$(awk -v b="$(stat -c %s killed.tokens.partial)" 'BEGIN { print b }')
done
holds "nothing was killed" test "$kills" -ge 1
expect_or_exists() { [ -e killed.tokens ] || expect 0 "${request[@]}" --save killed.json --output killed.tokens; }
expect_or_exists
holds "killed and repeated, the tokens are others" cmp -s killed.tokens whole.tokens
holds "killed and repeated, the tokenizer is another" cmp -s killed.json whole.json
holds "nothing was continued" test "$continued" -ge 1
holds "something is left beside the tokens: $(ls)" bash -c '! ls | grep -q "partial\|journal\|tmp-"'
finish
