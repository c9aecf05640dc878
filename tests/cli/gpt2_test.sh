#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small GPT-2: trained, written as other programs read it, read again, and made to write with and without caches.
. "$(dirname "$0")/common.sh"

words=(one two three four five six seven eight nine ten)
for ((i = 0; i < 1200; ++i)); do printf '%s %s,\n' "${words[i % 10]}" "${words[(i + 1) % 10]}"; done >count.txt
gpt2() { # ARGUMENT...: of a net of two blocks, for the characters of the text
  expect 0 train "$source_dir/configs/text/gpt2_124m.yaml" -q "data.train={source: text, path: count.txt, stride: 13, shuffle: true}" "data.val={source: text, path: count.txt}" \
    data.batch_size=16 vars.positions=40 vars.length=32 vars.width=32 vars.heads=4 vars.units=2 "$@"
}
gpt2 --out run train.epochs=3 "train.optimizer={name: adamw, lr: 0.004}" train.lr_schedule=null vars.dropout=0.05

# --- written with the names of Hugging Face, and read again
expect 0 export run gpt/model.safetensors
prints "gpt/model.safetensors"
prints "gpt/config.json"
for key in '"model_type": *"gpt2"' '"n_positions": *40' '"n_embd": *32' '"n_layer": *2' '"n_head": *4' '"n_inner": *128' '"activation_function": *"gelu_new"' \
  '"tie_word_embeddings": *true' '"layer_norm_epsilon": *1e-0*5'; do
  holds "config.json lacks $key: $(cat gpt/config.json)" grep -q "$key" gpt/config.json
done
for name in transformer.wte.weight transformer.wpe.weight transformer.h.1.attn.c_attn.weight transformer.h.0.mlp.c_proj.bias transformer.ln_f.bias; do
  holds "there is no array $name" grep -qaF "\"$name\"" gpt/model.safetensors
done
holds "a matrix is not [in, out]" grep -qaE '"transformer.h.0.attn.c_attn.weight":\{[^}]*"shape":\[32,96\]' gpt/model.safetensors
gpt2 --out again train.weights.file=gpt/model.safetensors train.epochs=0
expect 0 export again twice/model.safetensors
holds "reading and writing changes the file" cmp -s <(tail -c 40000 gpt/model.safetensors) <(tail -c 40000 twice/model.safetensors)
expect 0 export run own.safetensors --names own
holds "own names are not written" grep -qaF '"unit0_attention_qkv_fc_weight"' own.safetensors
holds "a file of own names has a config.json" test ! -e config.json
gpt2 --out owned train.weights.file=own.safetensors train.epochs=0
expect 2 export run lenet.onnx --names own
says "--names is for FILE.safetensors"
mkdir mine && echo '{"mine": 1}' >mine/config.json
expect 2 export run mine/model.safetensors
says "would be replaced"
expect 2 export run mine/model.safetensors --overwrite
says "is not of an earlier export"
holds "another config.json was replaced" grep -q mine mine/config.json
expect 8 export run gpt/other.safetensors
says "gpt/config.json exists already; use --overwrite to replace it"
expect 0 export run gpt/model.safetensors --overwrite

# --- a net of other names that computes the same is written on demand; another is refused by its layer
cat >bare.yaml <<END
name: bare
task: language_model
include: $source_dir/configs/common/transformer.yaml
vars: {length: 32, width: 32, heads: 4, causal: true, norm_eps: 1.0e-5}
net:
  input: ["\${length}"]
  layers:
    - Variable: {name: token_weight, shape: ["\${classes}", "\${width}"]}
    - Variable: {name: position, shape: [1, "\${length}", "\${width}"], init: {name: normal, sigma: 0.02}}
    - Embedding: {name: tokens, inputs: data, weight: token_weight, input_dim: "\${classes}", output_dim: "\${width}"}
    - broadcast_add: {name: placed, inputs: [tokens, position]}
    - encoder: {name: first, width: "\${width}", heads: "\${heads}", hidden: 48, causal: "\${causal}"}
    - layer_norm: {name: head}
    - FullyConnected: {name: scores, weight: token_weight, num_hidden: "\${classes}", flatten: false, no_bias: true}
    - transpose: {name: by_token, axes: [0, 2, 1]}
    - SoftmaxOutput: {name: softmax, multi_output: true, normalization: valid}
data:
  batch_size: 16
  train: {source: text, path: count.txt, stride: 13, shuffle: true}
train: {epochs: 1, optimizer: {name: adamw, lr: 0.004}, initializer: {name: normal, sigma: 0.05}}
END
expect 0 train bare.yaml --out bare -q
expect 0 export bare bare.safetensors
holds "a net of other names is written with those of GPT-2" grep -qaF '"first_attention_qkv_fc_weight"' bare.safetensors
expect 0 export bare theirs/model.safetensors --names huggingface
holds "the activation is not said" grep -q '"activation_function": *"gelu"' theirs/config.json
expect 0 train bare.yaml --out free -q vars.causal=false
expect 2 export free free.safetensors --names huggingface
says "scaled_dot_product_attention 'first_attention_heads'"
says "is_causal"

# --- caches change nothing, however long the text is and on any number of threads
prompt=$'four five,\nfive six,\nsix'
same() { # ARGUMENT...: the text does not depend on caches and threads
  expect 0 generate run --prompt "$prompt" --max-tokens 300 "$@"
  cp stdout text
  for more in --no-cache "--threads 1" "--threads 3"; do
    # shellcheck disable=SC2086
    expect 0 generate run --prompt "$prompt" --max-tokens 300 "$@" $more
    holds "$* $more writes another text" cmp -s text stdout
  done
}
same --temperature 0
holds "the text does not count: $(head -c 200 text)" grep -q "nine ten" text
same --temperature 1.2 --seed 3
same --temperature 0 --keep 31
same --temperature 0 --keep 1
expect 2 generate run --keep 32
says "32 tokens cannot stay in a window of 32: keep 1 to 31"
expect 0 generate free --prompt "one" --max-tokens 5
says "no cache of keys and values"
says "'first_attention_heads'"
says "is not causal"
expect 0 generate bare --prompt "one" --max-tokens 5
holds "there is no cache" bash -c '! grep -q "no cache" stderr'

# --- several prompts
printf 'one two,\n\nfour\r\nnine ten, ten one, o\nsix\n' >prompts.txt
expect 0 generate run --prompts prompts.txt --temperature 0 --max-tokens 50 --json
holds "not a line for each prompt" test "$(wc -l <stdout)" -eq 4
prints '"ended_by":"max_tokens"'
cp stdout together
for batch in 1 3; do
  expect 0 generate run --prompts prompts.txt --temperature 0 --max-tokens 50 --json --batch $batch
  holds "batches of $batch write another text" cmp -s together stdout
done
expect 0 generate run --prompt four --temperature 0 --max-tokens 50 --json
holds "a prompt alone gives another text" grep -qxF "$(sed -n 2p together)" stdout
"$program" generate run --prompts - --temperature 0 --max-tokens 50 --json <prompts.txt >piped 2>/dev/null
holds "prompts on stdin are not read" cmp -s together piped
expect 0 generate run --prompts prompts.txt --seed 5 --max-tokens 20
holds "the texts are not apart" test "$(grep -c '^$' stdout)" -ge 3
expect 0 generate run --prompts prompts.txt --temperature 0 --max-tokens 50 --json --stop ten
prints '"ended_by":"stop"'
expect 2 generate run --prompts prompts.txt --prompt one
says "give one of them"
printf '\n\n' >empty.txt
expect 4 generate run --prompts empty.txt
says "there is no prompt in it"
printf 'one\n%s\n' "$(head -c 60 count.txt | tr '\n' ' ')" >long.txt
expect 2 generate run --prompts long.txt
says "prompt 2 ('one two,"
says "the model reads at most 32"

# --- a stream that is stopped ends its line
"$program" generate run --prompt one --max-tokens 100000000 >stream 2>/dev/null &
stream=$!
for _ in $(seq 100); do [ -s stream ] && [ "$(wc -c <stream)" -gt 20 ] && break || sleep 0.1; done
kill -INT $stream
code=0
wait $stream || code=$?
holds "a stopped stream exits with $code" test $code -eq 130
holds "a stopped stream does not end its line" test "$(tail -c 1 stream | od -An -c | tr -d ' ')" = '\n'
finish
