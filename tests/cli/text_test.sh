#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Language models: text becomes tokens, a net learns which comes next, and writes on.
. "$(dirname "$0")/common.sh"

# A text of few words in a pattern that can be learnt: each line counts on from the one before.
words=(one two three four five six seven eight nine ten)
for ((i = 0; i < 2400; ++i)); do printf '%s %s,\n' "${words[i % 10]}" "${words[(i + 1) % 10]}"; done >count.txt
cat >text.yaml <<'END'
name: text
task: language_model
include: SOURCE/configs/common/transformer.yaml
vars: {length: 32, width: 32, heads: 4, norm_eps: 1.0e-5}
net:
  input: ["${length}"]
  layers:
    - Variable: {name: token_weight, shape: ["${classes}", "${width}"]}
    - Variable: {name: position, shape: [1, "${length}", "${width}"], init: {name: normal, sigma: 0.02}}
    - Embedding: {name: tokens, inputs: data, weight: token_weight, input_dim: "${classes}", output_dim: "${width}"}
    - broadcast_add: {name: placed, inputs: [tokens, position]}
    - encoder: {name: unit0, width: "${width}", heads: "${heads}", hidden: "${4 * width}", causal: true}
    - encoder: {name: unit1, width: "${width}", heads: "${heads}", hidden: "${4 * width}", causal: true}
    - layer_norm: {name: head}
    - FullyConnected: {name: scores, weight: token_weight, num_hidden: "${classes}", flatten: false, no_bias: true}
    - transpose: {name: by_token, axes: [0, 2, 1]}
    - SoftmaxOutput: {name: softmax, multi_output: true, normalization: valid}
data:
  batch_size: 16
  train: {source: text, path: count.txt, part: [0, 0.9], stride: 13, shuffle: true}
  val: {source: text, path: count.txt, part: [0.9, 1]}
train: {epochs: 3, optimizer: {name: adamw, lr: 0.004}, initializer: {name: normal, sigma: 0.05}}
END
sed -i "s#SOURCE#$source_dir#" text.yaml
expect 0 check text.yaml
expect 0 train text.yaml --out run
says "count.txt: "
says "characters"
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the text is not learned: perplexity $(last val_perplexity)" test "$(last val_perplexity)" -lt 1300
expect 0 eval run --predictions each.csv
prints "softmax: loss"
prints "perplexity"
holds "no line for each example" test "$(head -1 each.csv)" = example,loss,perplexity -a "$(wc -l <each.csv)" -gt 50
expect 0 eval run --json
number() { grep -o "\"$1\": *[0-9.e-]*" stdout | head -1 | sed 's/.*: *//'; }
holds "the report is not the metric: $(number perplexity)" awk -v a="$(grep -o '"perplexity": *[0-9.e-]*' stdout | head -1 | sed 's/.*: *//')" -v b="$(grep -o '"perplexity": *[0-9.e-]*' stdout | tail -1 | sed 's/.*: *//')" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }'
expect 0 eval run --format csv
prints "loss,perplexity,bits_per_token,tokens"
expect 0 eval run count.txt
expect 0 verify-resume text.yaml --steps 7
expect 0 export run text.onnx
says "input: 'data' [N, 32]: ids of tokens as numbers, "
holds "the file does not hold the tokenizer" grep -q tokenizer text.onnx
expect 3 train text.yaml --out none data.val.tokenizer=words
says "data.val.tokenizer: validation data is read as the training data, where it is characters"

# --- generating
expect 0 generate run --prompt $'four five,\nfive six,\nsix' --temperature 0 --max-tokens 30
prints "six seven,"
prints "seven eight,"
prints "eight nin"
cp stdout greedy
expect 0 generate run --prompt $'four five,\nfive six,\nsix' --temperature 0 --max-tokens 30 --threads 1
holds "another number of threads gives another text" cmp -s greedy stdout
expect 0 generate run --prompt $'one two,\n' --seed 7 --temperature 1.5 --max-tokens 60
cp stdout drawn
expect 0 generate run --prompt $'one two,\n' --seed 7 --temperature 1.5 --max-tokens 60 --threads 1
holds "the same seed gives another text" cmp -s drawn stdout
expect 0 generate run --prompt $'one two,\n' --seed 8 --temperature 1.5 --max-tokens 60
holds "another seed gives the same text" bash -c '! cmp -s drawn stdout'
expect 0 generate run --prompt $'four five,\nfive six,\nsix' --temperature 0 --max-tokens 30 --stop eight
holds "a stop does not end the text" bash -c '! grep -q eight stdout && grep -q "seven" stdout'
expect 0 generate run --prompt $'four five,\n' --top-k 1 --seed 3 --max-tokens 9 --json
prints '"tokens":9'
prints '"text":"five six,'
printf 'four five,\n' >prompt.txt
expect 0 generate run --prompt-file prompt.txt --top-p 0.01 --max-tokens 9
prints "five six,"
printf 'four five,\n' | "$program" generate run --prompt-file - --temperature 0 --max-tokens 8 >piped 2>/dev/null
holds "a prompt on stdin is not read" grep -q "five six" piped
expect 2 generate run --prompt "$(head -c 60 count.txt)"
says "the model reads at most 32"
expect 4 generate run --prompt "ZEBRA"
says "Z"
expect 2 generate run --prompt a --prompt-file prompt.txt
expect 2 infer run count.txt
says "mxtrain generate"

# --- tokens of its own
expect 0 tokenize count.txt --tokenizer characters
prints "token"
expect 0 tokenize count.txt --train 290 --save tokenizer.json --output count.tokens
prints "bytes each"
expect 8 tokenize count.txt --train 290 --output count.tokens
says "use --overwrite to replace it, or write another"
expect 0 tokenize --verify count.tokens
prints "as it was written"
sed 's#path: count.txt#path: count.tokens#g' text.yaml >tokens.yaml
expect 0 train tokens.yaml --out tokens -q train.epochs=2
expect 0 generate tokens --prompt $'four five,\nfive six,\n' --temperature 0 --max-tokens 12
prints "six seven"
sed 's#path: count.txt#path: count.txt, tokenizer_file: tokenizer.json#g' text.yaml >same.yaml
expect 0 train same.yaml --out same -q train.epochs=2
holds "a token file and its text train differently" cmp -s <(cut -d, -f6- tokens/metrics.csv) <(cut -d, -f6- same/metrics.csv)
cp count.tokens damaged.tokens
printf '\xff' | dd of=damaged.tokens bs=1 seek=$(($(stat -c %s damaged.tokens) / 2)) conv=notrunc 2>/dev/null
expect 4 tokenize --verify damaged.tokens
expect 2 tokenize --verify count.tokens --train 300
expect 8 tokenize nothing.txt
expect 2 tokenize count.txt --train 300 --tokenizer bytes
expect 2 tokenize count.txt --output count.bin
says "FILE.tokens"
mkdir -p corpus/deep && head -20 count.txt >corpus/a.txt && tail -20 count.txt >corpus/deep/b.txt
expect 0 tokenize corpus --tokenizer tokenizer.json --json
prints '"documents":2'

# --- texts in rows
awk '{ printf "{\"line\": \"%s\", \"n\": %d}\n", $0, NR }' count.txt >count.jsonl
expect 0 tokenize count.jsonl --column line --tokenizer tokenizer.json --output rows.tokens --json
prints "\"documents\":$(wc -l <count.txt)"
sed 's#path: count.txt#path: count.jsonl, text_columns: [line], tokenizer_file: tokenizer.json#g' text.yaml >rows.yaml
sed 's#path: count.txt#path: rows.tokens#g' text.yaml >row_tokens.yaml
for form in rows row_tokens; do expect 0 train $form.yaml --out $form -q train.epochs=1; done
holds "a token file and its rows train differently" cmp -s <(cut -d, -f6- rows/metrics.csv) <(cut -d, -f6- row_tokens/metrics.csv)
expect 0 eval rows count.jsonl
prints "perplexity"
{ echo n,line; awk '{ printf "%d,\"%s\"\n", NR, $0 }' count.txt; } >count.csv
expect 0 tokenize count.csv --column line --tokenizer tokenizer.json --json
prints "\"documents\":$(wc -l <count.txt)"
expect 4 tokenize count.jsonl --tokenizer tokenizer.json
says "count.jsonl:1: there is no key 'text'"

# --- a configuration for a text, and for a folder of them
expect 0 init count.txt
prints "count.yaml: 1 text of "
expect 0 check count.yaml
expect 0 train count.yaml --out inited -q train.max_steps=2
expect 0 generate inited --prompt "one" --max-tokens 2
for i in 1 2 3 4 5 6 7 8; do cp count.txt corpus/$i.txt; done
expect 0 init corpus --json
prints '"texts":10'
expect 0 check corpus.yaml
expect 2 init corpus --overwrite --size 64
head -c 500 count.txt >tiny.txt
expect 4 init tiny.txt
says "too few to learn from"
head -c 500 count.txt >tiny.dat2
expect 8 init tiny.dat2
says "is not a folder"

# --- what does not fit
printf 'one two, ZEBRA\n%.0s' 1 2 3 4 5 6 7 8 >other.txt
expect 4 eval run other.txt
says "other.txt"
sed 's#, part: \[0.9, 1\]#, part: [0.9, 0.1]#' text.yaml >part.yaml
expect 3 train part.yaml --out none
says "part = "
head -c 20 count.txt >short.txt
expect 4 train text.yaml --out none data.train.path=short.txt
says "too few"
expect 3 train text.yaml --out none data.train.tokenizer_file=nothing.json
says "there is no such file or folder"
expect 3 train text.yaml --out none data.train.tokenizer=letters
expect 4 train tokens.yaml --out none data.train.path=damaged.tokens
expect 3 check text.yaml vars.length=17
says "use another length"
expect 2 generate run --stop ""
expect 2 tokenize count.tokens
printf 'a \xff b' >corpus/c.txt
expect 4 tokenize corpus --train 300
says "corpus/c.txt is not UTF-8"
rm corpus/c.txt

# --- the other tokens by name; a run is continued by its folder; what a run reads other texts with
for tokens in words bytes; do
  expect 0 train text.yaml --out $tokens -q train.max_steps=3 data.train.tokenizer=$tokens
  expect 0 eval $tokens
  expect 0 generate $tokens --prompt "one two" --max-tokens 3
done
printf 'a b c d e f g\n%.0s' {1..600} >lines.txt
expect 0 train text.yaml --out lines -q data.train.path=lines.txt data.val.path=lines.txt data.train.tokenizer=words data.train.stride=3 train.epochs=4
expect 0 generate lines --prompt "b" --temperature 0 --max-tokens 9
holds "a prompt of words is not continued: $(cat stdout)" cmp -s stdout <(printf 'b c d e f g\na b c\n')
expect 0 train text.yaml --out part -q train.max_steps=5
expect 0 train part --resume -q train.max_steps=9
expect 0 eval part part/config.yaml
expect 0 eval run count.txt --json
prints "\"tokens\":$((($(wc -c <count.txt) - 1) / 32 * 32))"
tr ' ' '_' <count.txt >other.txt
expect 4 eval run text.yaml data.val.path=other.txt
says "other.txt"
sed '/by_token/d; s/multi_output: true/preserve_shape: true/' text.yaml >last.yaml
expect 0 train last.yaml --out last -q
holds "with tokens on the last axis the run is another: $(tail -1 last/metrics.csv)" awk -F, -v a="$(tail -1 run/metrics.csv | cut -d, -f8)" -v b="$(tail -1 last/metrics.csv | cut -d, -f8)" 'BEGIN { exit !(a - b < 0.05 && b - a < 0.05) }'
expect 0 eval last
prints "softmax: loss"
expect 0 generate last --prompt $'four five,\n' --temperature 0 --max-tokens 9
prints "five six,"
expect 0 --seed 7 generate run --prompt $'one two,\n' --temperature 1.5 --max-tokens 60
holds "--seed before the command is another" cmp -s drawn stdout
finish
