#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Conversations in JSON lines: answers are learnt, and given.
. "$(dirname "$0")/common.sh"

# The answer to a letter is the next one, three times; the questions are not to be learnt.
letters=(a b c d e f g h)
for ((i = 0; i < 400; ++i)); do
  q=${letters[i / 4 % 8]} a=${letters[(i / 4 + 1) % 8]}
  case $((i % 4)) in
    0) printf '{"messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "%s"}]}\n' "$q" "$a$a$a" ;;
    1) printf '{"conversations": [{"from": "human", "value": "%s"}, {"from": "gpt", "value": "%s"}]}\n' "$q" "$a$a$a" ;;
    2) printf '{"prompt": "%s", "completion": "%s", "source": 7}\n' "$q" "$a$a$a" ;;
    3) printf '[{"role": "system", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "%s"}]}, {"role": "assistant", "content": "%s"}]\n' "$q" "$a$a$a" ;;
  esac
done >chats.jsonl
cat >chat.yaml <<'END'
name: chat
include: SOURCE/tests/cli/small_transformer.yaml
vars: {length: 96, width: 32}
data:
  batch_size: 8
  train: {source: chat, path: chats.jsonl, shuffle: true}
  val: {source: chat, path: chats.jsonl}
train: {epochs: 30, optimizer: {name: adamw, lr: 0.01}}
END
sed -i "s#SOURCE#$source_dir#" chat.yaml
expect 0 check chat.yaml
expect 0 train chat.yaml --out run
says "chats.jsonl: 400 conversations in"
says 'answers with "<|im_start|>assistant\n" and end with "<|im_end|>"'
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
# Every token of an answer follows from the question; what is not learnt does not count.
holds "the answers are not learned: perplexity $(last val_perplexity)" test "$(last val_perplexity)" -lt 1050

expect 0 generate run --prompt c --temperature 0
prints "ddd"
holds "more than the answer is written: $(cat stdout)" test "$(cat stdout)" = ddd
expect 0 generate run --prompt c --system hi --temperature 0 --json
prints '"text":"ddd"'
prints '"ended_by":"stop"'
printf 'a\n\nb\n' >questions.txt
expect 0 generate run --prompts questions.txt --temperature 0
holds "questions and answers: $(cat stdout)" test "$(tr '\n' / <stdout)" = "a/bbb//b/ccc/"
expect 0 generate run --raw --prompt '<|im_start|>user' --max-tokens 3 --temperature 0
prints "<|im_start|>user"
expect 2 generate run --raw --system hi --prompt a
says "with --raw there is none"
expect 2 generate run
says "answers questions: give one with --prompt"
expect 0 eval run chats.jsonl
prints "perplexity"
expect 0 eval run
prints "perplexity"
expect 0 verify-resume chat.yaml --steps 11

# --- a recipe for conversations
for ((i = 0; i < 4; ++i)); do cat chats.jsonl; done >more.jsonl
expect 0 init more.jsonl
prints "more.yaml: conversations of "
expect 0 check more.yaml
expect 0 train more.yaml --out made -q train.epochs=1 vars.units=1 vars.width=32
expect 0 generate made --prompt 'a?' --max-tokens 5

# --- other texts around the turns, bytes, all tokens learnt
expect 0 train chat.yaml --out prefixes train.epochs=1 \
  'data.train={source: chat, path: chats.jsonl, format: prefixes, user: "Q: ", assistant: "A: ", tokenizer: bytes, learn: all}'
says 'questions begin with "Q: ", answers with "A: " and end with "\n"'

# --- each conversation in a row of its own, as recurrent nets need it
expect 0 train chat.yaml --out rows train.epochs=1 'data.train={source: chat, path: chats.jsonl, pack: false}' 'data.val={source: chat, path: chats.jsonl, pack: false}'
says "400 conversations in 400 rows"
expect 0 eval rows
prints "perplexity"
expect 3 train chat.yaml --out none data.train.pack=false data.val.pack=false net.layers.8.SoftmaxOutput.use_ignore=false
says "give it use_ignore: true"

# --- what does not fit
bad() { printf '%s\n' "$1" >bad.jsonl; expect 4 train chat.yaml --out none data.train.path=bad.jsonl; }
bad '{"messages": [{"role": "tool", "content": "x"}]}'
says "bad.jsonl:1: message 1 has the role 'tool'; expected system, user or assistant"
bad '{"text": "x"}'
says 'bad.jsonl:1: it is no conversation; expected {"messages"'
bad '{"messages": [{"role": "user", "content": "x"}]}'
says "nothing is learnt of its 1 conversation: they have no answers"
bad '{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "weight": 0}]}'
says "they have no answers"
printf '{"prompt": "%s", "completion": "y"}\n' "$(printf 'x%.0s' {1..200})" >bad.jsonl
expect 3 train chat.yaml --out none data.train.path=bad.jsonl
says "bad.jsonl: no answer begins within 96 tokens"
bad '{"messages": ['
says "bad.jsonl:1: it is not JSON"
expect 3 train chat.yaml --out none 'net.layers.8.SoftmaxOutput.use_ignore=false'
says "use_ignore: true"
expect 3 train chat.yaml --out none data.train.template=jinja
says "template"
finish
