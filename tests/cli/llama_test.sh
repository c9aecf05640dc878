#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small net built like Llama: trained, written as other programs read it, read again, refused where it is another, and made to write with and
# without caches; and GGUF files.
. "$(dirname "$0")/common.sh"

words=(one two three four five six seven eight nine ten)
for ((i = 0; i < 1200; ++i)); do printf '%s %s,\n' "${words[i % 10]}" "${words[(i + 1) % 10]}"; done >count.txt
expect 0 tokenize count.txt --train 280 --save tokenizer.json
llama() { # ARGUMENT...: of a net of two blocks, for byte-level BPE
  expect "${wanted:-0}" train "$source_dir/configs/text/llama.yaml" -q \
    "data.train={source: text, path: count.txt, stride: 13, shuffle: true, tokenizer_file: tokenizer.json}" "data.val={source: text, path: count.txt}" \
    data.batch_size=16 vars.length=32 vars.width=32 vars.heads=4 vars.key_heads=2 vars.hidden=48 vars.units=2 "$@"
}
llama --out run train.epochs=3 "train.optimizer={name: adamw, lr: 0.004}" train.lr_schedule=null

# --- written with the names of Hugging Face, and read again
expect 0 export run theirs/model.safetensors
prints "theirs/model.safetensors"
prints "theirs/config.json"
for key in '"model_type": *"llama"' '"hidden_size": *32' '"num_hidden_layers": *2' '"num_attention_heads": *4' '"num_key_value_heads": *2' '"head_dim": *8' \
  '"intermediate_size": *48' '"rope_theta": *10000' '"rms_norm_eps": *1e-0*5' '"tie_word_embeddings": *true' '"max_position_embeddings": *32'; do
  holds "config.json lacks $key: $(cat theirs/config.json)" grep -q "$key" theirs/config.json
done
for name in model.embed_tokens.weight model.layers.1.self_attn.k_proj.weight model.layers.0.mlp.gate_proj.weight model.norm.weight \
  model.layers.1.post_attention_layernorm.weight; do
  holds "there is no array $name" grep -qaF "\"$name\"" theirs/model.safetensors
done
llama --out again train.weights.file=theirs/model.safetensors train.epochs=0
expect 0 export again twice/model.safetensors
holds "reading and writing changes the file" cmp -s <(tail -c 30000 theirs/model.safetensors) <(tail -c 30000 twice/model.safetensors)
llama --out untied train.epochs=1 vars.tied=false
expect 0 export untied untied/model.safetensors
holds "the output has no weight of its own" grep -qaF '"lm_head.weight"' untied/model.safetensors
llama --out sliding train.epochs=1 vars.sliding_window=6
expect 0 export sliding sliding_out/model.safetensors
holds "a sliding window is not Mistral's" grep -q '"model_type": *"mistral"' sliding_out/config.json

# --- weights of another net are refused by the key that says so
other() { # CHANGE TEXT
  mkdir -p other && cp theirs/model.safetensors other && sed "$1" theirs/config.json >other/config.json
  wanted=3 llama --out refused --overwrite train.weights.file=other/model.safetensors train.epochs=0
  says "other/model.safetensors is of another net, as config.json beside it says: $2"
}
other 's/"rope_theta": *[0-9.]*/"rope_theta": 500000/' "rope_theta is 500000, and the net has 10000 (vars.base)"
other 's/"num_key_value_heads": *2/"num_key_value_heads": 1/' "num_key_value_heads is 1, and the net has 2 (vars.key_heads)"
other 's/"mlp_bias": *false/"mlp_bias": true/' "mlp_bias is true, and biases of mlps are not covered"
other 's/"attention_bias": *false/"attention_bias": true/' "attention_bias is true, and biases of attention are not covered"
other 's/"mlp_bias": *false/"rope_scaling": {"rope_type": "llama3", "factor": 8}/' "rope_scaling is of the type 'llama3'"
other 's/"hidden_act": *"silu"/"hidden_act": "gelu"/' "hidden_act is \"gelu\", and only silu is covered"
other 's/"model_type": *"llama"/"model_type": "qwen2"/' "model_type is 'qwen2'"
other 's/"tie_word_embeddings": *true/"tie_word_embeddings": false/' "tie_word_embeddings is false"

# --- caches change nothing, however long the text is and on any number of threads
prompt=$'four five,\nfive six,\nsix'
same() { # RUN ARGUMENT...: the text does not depend on caches and threads
  local run=$1
  shift
  expect 0 generate "$run" --prompt "$prompt" --max-tokens 150 "$@"
  holds "there is no cache" bash -c '! grep -q "no cache" stderr'
  cp stdout text
  for more in --no-cache "--threads 1" "--threads 3"; do
    # shellcheck disable=SC2086
    expect 0 generate "$run" --prompt "$prompt" --max-tokens 150 "$@" $more
    holds "$run $* $more writes another text" cmp -s text stdout
  done
}
same run --temperature 0
holds "the text does not count: $(head -c 200 text)" grep -q "nine ten" text
same run --temperature 1.2 --seed 3
same sliding --temperature 0

# --- GGUF: the header, and what is refused
expect 0 export run net.gguf
prints "net.gguf"
holds "it is no GGUF file of version 3" test "$(head -c 8 net.gguf | od -An -tx1 | tr -d ' \n')" = 4747554603000000
for text in llama.attention.head_count_kv tokenizer.ggml.merges blk.1.ffn_gate.weight token_embd.weight; do
  holds "net.gguf lacks $text" grep -qaF "$text" net.gguf
done
holds "one weight is written twice" bash -c '! grep -qaE "[^_]output\.weight" net.gguf'
expect 0 export untied untied.gguf --type float16
holds "the output is not written" grep -qaE '[^_]output\.weight' untied.gguf
holds "float16 is not half the size" test "$(stat -c %s untied.gguf)" -lt "$(stat -c %s net.gguf)"
expect 2 export sliding sliding.gguf
says "sliding_window is 6, and llama.cpp has no equivalent"
expect 2 export run lenet.onnx --type float16
says "--type is for FILE.gguf"
expect 0 train "$source_dir/configs/text/llama.yaml" -q --out characters "data.train={source: text, path: count.txt}" "data.val={source: text, path: count.txt}" \
  train.epochs=1 vars.length=32 vars.width=16 vars.heads=2 vars.key_heads=1 vars.hidden=16 vars.units=1
expect 2 export characters characters.gguf
says "a GGUF file takes byte-level BPE that splits as GPT-2's or SmolLM's alone"
holds "a refused file was written" test ! -e characters.gguf
finish
