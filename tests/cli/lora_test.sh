#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LoRA: checkpoints of factors on a base, resumed, merged for use and for other programs, and what refuses it.
. "$(dirname "$0")/common.sh"

words=(one two three four five six seven eight nine ten)
for ((i = 0; i < 1200; ++i)); do printf '%s %s,\n' "${words[i % 10]}" "${words[(i + 1) % 10]}"; done >count.txt
for ((i = 0; i < 1200; ++i)); do printf '%s %s,\n' "${words[(i + 1) % 10]}" "${words[i % 10]}"; done >back.txt
configure() { # FILE TEXT TOKENIZER
  cat >"$1.yaml" <<END
name: $1
include: $source_dir/configs/text/gpt2_124m.yaml
vars: {positions: 40, length: 32, width: 32, heads: 4, units: 2}
data:
  batch_size: 16
  train: {source: text, path: $2, stride: 13, shuffle: true, tokenizer_file: ""}
  val: {source: text, path: $2}
train: {epochs: 3, optimizer: {name: adamw, lr: 0.004}, lr_schedule: null, save: {every: 1epoch}}
END
}
configure base count.txt
configure tuned back.txt
expect 0 train base.yaml --out base -q
lora=(train.weights.file=base 'train.lora={layers: ["*qkv_fc", "*mlp_?_fc"], rank: 4, alpha: 8, dropout: 0.05}')
value() { grep -o "\"$1\": *[-0-9.e]*" "$2" | grep -o '[-0-9.e]*$' | head -1; } # NAME FILE

# --- factors learn, and nothing else is in the checkpoint
expect 0 train tuned.yaml "${lora[@]}" --out tuned
says " trainable"
holds "the checkpoint holds more than the factors: $(stat -c %s tuned/checkpoints/last base/checkpoints/last)" sh -c \
  '[ "$(stat -c %s tuned/checkpoints/last)" -lt "$(($(stat -c %s base/checkpoints/last) / 2))" ]'
holds "the base's weights are in the checkpoint" sh -c '! grep -qaF "arg:token_weight" tuned/checkpoints/last'
holds "the checkpoint lacks a factor" grep -qaF arg:unit1_mlp_a_fc_lora_b_weight tuned/checkpoints/last
expect 0 eval base back.txt --json
before=$(value loss stdout)
expect 0 eval tuned back.txt --json
after=$(value loss stdout)
holds "fine-tuning did not lower the loss: $before, then $after" awk "BEGIN { exit !($after < 0.7 * $before) }"

# --- merged, it is the model that was validated, and a file like any other
expect 0 eval tuned --json
merged=$(value loss stdout)
validated=$(tail -1 tuned/metrics.csv | tr , '\n' | paste -d, <(head -1 tuned/metrics.csv | tr , '\n') - | sed -n 's/^val_loss,//p')
holds "eval of the merged model: $merged, of the net with factors: $validated" \
  awk "BEGIN { d = $merged - ($validated + 0); exit !(\"$validated\" != \"\" && d < 1e-5 && d > -1e-5) }"
expect 0 export tuned merged/model.safetensors
holds "a factor is exported" sh -c '! grep -qa lora_ merged/model.safetensors'
expect 0 train tuned.yaml --out merged_run -q train.weights.file=merged/model.safetensors train.epochs=0
expect 0 eval merged_run back.txt --json
merged=$(value loss stdout)
holds "the exported file gives $merged, the run $after" awk "BEGIN { d = $merged - $after; exit !(d < 1e-5 && d > -1e-5) }"
expect 0 generate tuned --prompt "two one," --max-tokens 60 --temperature 0
holds "the model counts forward as its base: $(cat stdout)" grep -q "two,$" stdout

# --- stopped and resumed anywhere, the bits are the same
expect 0 verify-resume tuned.yaml "${lora[@]}" --steps 10
expect 0 train tuned.yaml "${lora[@]}" --out parts -q train.max_steps=20
expect 0 train parts --resume -q train.max_steps=0
holds "a resumed run has other bits" "$helper" compare tuned/checkpoints/last parts/checkpoints/last
expect 0 train tuned --extend -q train.epochs=1 --out tuned

# --- on top of each other, and with averages of the weights
expect 0 train base.yaml --out twice -q train.weights.file=tuned 'train.lora="*proj_fc"' train.epochs=1 train.ema=0.9
holds "averages are of other arrays than the factors" sh -c '! grep -qaF avg:token_weight twice/checkpoints/last && grep -qaF avg:unit0_attention_proj_fc_lora_a_weight twice/checkpoints/last'
expect 0 eval twice count.txt

# --- the base is looked for, and must be the same
expect 0 eval tuned back.txt --json
after=$(value loss stdout)
cp base/checkpoints/best kept && mv base gone
expect 8 eval tuned back.txt
says "holds what LoRA added to $work/base, which is not there any more; put it back, or a copy of it beside the checkpoint"
expect 8 train tuned --resume train.max_steps=0 train.epochs=9
says "there are no weights $work/base"
mv gone tuned/base
expect 0 eval tuned back.txt --json
holds "another model with the base in the run's folder" [ "$(value loss stdout)" = "$after" ]
mv tuned/base base
cp tuned/checkpoints/last base/checkpoints/best
expect 4 eval tuned back.txt
cp kept base/checkpoints/best
expect 0 train base.yaml --out other -q --seed 7
mv base right && mv other base
expect 4 eval tuned back.txt
says "whose weights have changed since"
expect 3 train tuned --resume train.epochs=9
says "the checkpoint holds what LoRA added to"
rm -r base && mv right base
expect 3 train base --resume "${lora[@]}" train.epochs=9
says "base is a run of another net, recipe: unit0_attention_qkv_fc_lora_a_weight is not in the run"

# --- what it takes, before it is taken; what is refused
expect 0 plan tuned.yaml "${lora[@]}"
prints "on disk:"
expect 0 plan tuned.yaml "${lora[@]}" --json
holds "plan counts states of frozen parameters" [ "$(value optimizer_bytes stdout)" -lt "$(($(value parameters_bytes stdout) / 2))" ]
expect 0 train tuned.yaml "${lora[@]}" --dry-run
expect 3 train tuned.yaml 'train.lora="*qkv_fc"'
says "train.lora needs train.weights.file, the net that it adapts"
expect 3 train tuned.yaml "${lora[@]}" train.freeze='unit0*'
says "train.freeze.layers does not go with train.lora, which freezes the net"
expect 3 train tuned.yaml train.weights.file=base 'train.lora="*norm*"'
says "train.lora.layers: "
expect 3 train tuned.yaml train.weights.file=base train.lora='scores'
says "shares its weight 'token_weight' with 'tokens'"
expect 3 train tuned.yaml train.weights.file=base 'train.lora={layers: "*qkv_fc", whole: nothing*}'
says "train.lora.whole: "
expect 3 train tuned.yaml train.weights.file=base 'train.lora={layers: "*qkv_fc", r: 4}'
says "did you mean 'train.lora.rank'?"

# --- an image classifier with convolutions, batch norms and a new head
"$helper" images train 12
"$helper" images val 6
cat >photos.yaml <<'END'
name: photos
net: {use: resnet18, input: [3, 32, 32]}
data:
  batch_size: 4
  train: {source: image_folder, path: train, shuffle: true, transforms: [{resize: [32, 32]}, {normalize: imagenet}]}
  val: {source: image_folder, path: val, transforms: [{resize: [32, 32]}, {normalize: imagenet}]}
train: {epochs: 1, optimizer: {name: adam, lr: 0.001}}
END
expect 0 train photos.yaml --out trunk -q net.classes=7 data.train.path=train
expect 3 train photos.yaml --out none train.weights=trunk train.lora='stage2*'
says "train them too (train.lora.whole)"
expect 0 train photos.yaml --out photos train.weights=trunk 'train.lora={layers: "stage*", whole: fc*}'
expect 0 eval photos val
expect 0 infer photos val
expect 0 verify-resume photos.yaml train.weights=trunk 'train.lora={layers: "stage2*", whole: fc*}' train.amp=off train.epochs=3
finish
