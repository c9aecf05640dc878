#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Documents of different lengths in rows of one: lines of a text, and texts of a folder.
. "$(dirname "$0")/common.sh"

# A line repeats its first letter; nothing tells the letter of the next one.
letters=(a b c d e f g h)
for ((i = 0; i < 1600; ++i)); do
  line=
  for ((k = 0; k <= i * 7 % 11; ++k)); do line+=${letters[i * 5 % 8]}; done
  printf '%s\n' "$line"
done >lines.txt
cat >lines.yaml <<'END'
name: lines
include: SOURCE/tests/cli/small_transformer.yaml
data:
  batch_size: 8
  train: {source: text, path: lines.txt, part: [0, 0.9], pack: lines, shuffle: true}
  val: {source: text, path: lines.txt, part: [0.9, 1], pack: lines}
train: {epochs: 6, optimizer: {name: adamw, lr: 0.005}}
END
sed -i "s#SOURCE#$source_dir#" lines.yaml
expect 0 check lines.yaml
expect 0 train lines.yaml --out run
says "% of them padding"
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the lines are not learned: perplexity $(last val_perplexity)" test "$(last val_perplexity)" -lt 2200
expect 0 generate run --prompt $'\nccc' --temperature 0 --max-tokens 3
prints "ccc"
expect 0 eval run
expect 0 eval run lines.txt

# --- the plan is of the net that is trained
expect 0 plan lines.yaml
prints "tokens hold several documents; "
prints "read at the tokens' places in their documents"
expect 0 plan lines.yaml --json
prints '"attention_by_document": ['
planned=$(grep -o '"full_bytes": *[0-9]*' stdout | head -1 | grep -o '[0-9]*$')
trained=$(grep -o '"arena_bytes": *[0-9]*' run/events.jsonl | head -1 | grep -o '[0-9]*$')
holds "planned are $planned bytes of activations, trained was with $trained" test "$planned" = "$trained"
expect 0 plan lines.yaml --json data.train.pack=none data.val.pack=none
prints '"attention_by_document": []'
holds "packed documents take the memory of others" test "$planned" != "$(grep -o '"full_bytes": *[0-9]*' stdout | head -1 | grep -o '[0-9]*$')"

# --- stopped and resumed within an epoch, the bits are the same; also of several workers
expect 0 verify-resume lines.yaml --steps 11
expect 0 verify-resume lines.yaml --steps 11 train.kvstore.workers=2

# --- texts of a folder
mkdir texts
for ((i = 0; i < 40; ++i)); do sed -n "$((i * 20 + 1)),$((i * 20 + 1 + i % 4))p" lines.txt >"texts/$i.txt"; done
expect 0 train lines.yaml --out texts_run train.epochs=1 'data.train={source: text, path: texts, pack: texts, shuffle: true}' \
  'data.val={source: text, path: texts}'
says "texts: 40 documents in"

# --- what does not fit
expect 3 train lines.yaml --out none net.layers.8.SoftmaxOutput.use_ignore=false
says "padding, and what is not to be learnt, has the label -1; give it use_ignore: true"
expect 3 train lines.yaml --out none data.train.stride=3
says "pack: documents are no windows of a stream; remove stride"
expect 3 train lines.yaml --out none data.train.pack=words
says "pack"
finish
