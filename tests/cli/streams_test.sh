#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# States that go on from batch to batch over the streams of a text.
. "$(dirname "$0")/common.sh"

# A word of the second half of a text of 40 words in turns tells which half it is in only by what came long before it.
for ((i = 0; i < 400; ++i)); do
  printf 'left'
  for ((k = 0; k < 11; ++k)); do printf ' on'; done
  printf ' west right'
  for ((k = 0; k < 12; ++k)); do printf ' on'; done
  printf ' east '
done >turns.txt
cat >turns.yaml <<'END'
name: turns
task: language_model
net:
  input: [4]
  layers:
    - Embedding: {name: words, input_dim: "${classes}", output_dim: 12}
    - transpose: {name: by_step, axes: [1, 0, 2]}
    - RNN: {name: lstm, mode: lstm, state_size: 24, num_layers: 1}
    - transpose: {name: by_example, axes: [1, 0, 2]}
    - FullyConnected: {name: scores, num_hidden: "${classes}", flatten: false}
    - SoftmaxOutput: {name: softmax, preserve_shape: true, normalization: valid}
  carry: lstm
data:
  batch_size: 6
  train: {source: text, path: turns.txt, tokenizer: words, streams: 6, shuffle: false}
  val: {source: text, path: turns.txt, streams: 6}
train: {epochs: 12, optimizer: {name: adam, lr: 0.01}}
END
loss() { grep -o '"loss": *[-0-9.e]*' stdout | grep -o '[-0-9.e]*$' | head -1; }

# --- what lies further back than an example is known with the states, and not without
expect 0 train turns.yaml --out carried -q
expect 0 eval carried --json
with=$(loss)
expect 0 train turns.yaml --out alone -q net.carry=null
expect 0 eval alone --json
without=$(loss)
holds "carried states do not help: $with with, $without without" awk "BEGIN { exit !($with < 0.6 * $without) }"

# --- eval carries as the run's own validation does; of another number of rows it cannot
column=$(head -1 carried/metrics.csv | tr , '\n' | grep -nx val_loss | cut -d: -f1)
validated=$(tail -n +2 carried/metrics.csv | cut -d, -f"$column" | sort -g | head -1) # of the best epoch
holds "eval gives $with, validation $validated" awk "BEGIN { d = $with - $validated; exit !(d < 1e-6 && d > -1e-6) }"
expect 0 eval carried turns.txt
expect 3 eval carried --batch 4
says "data of 6 streams need a row of the batch for each, got batches of 4"
expect 0 generate carried --prompt "left on on" --max-tokens 5

# --- stopped and resumed within an epoch, the bits are the same; also of several workers, and steps of several batches
expect 0 verify-resume turns.yaml --steps 25
expect 0 verify-resume turns.yaml --steps 25 train.kvstore.workers=2
expect 0 verify-resume turns.yaml --steps 25 train.grad_accum=3
expect 0 train turns.yaml --out parts -q train.max_steps=700
expect 0 train parts --resume -q train.max_steps=0
holds "a resumed run has other bits" "$helper" compare carried/checkpoints/last parts/checkpoints/last
holds "the checkpoint lacks the states" grep -qaF car:0/lstm_state_cell carried/checkpoints/last

# --- what does not fit
expect 3 train turns.yaml data.batch_size=5
says "data.train.streams = 6: data.batch_size is 5"
expect 3 train turns.yaml data.train.streams=0
says "net.carry needs data.train.streams"
expect 3 train turns.yaml data.train.shuffle=true
says "data.train.streams are read in their order, and data.train.shuffle is true"
expect 3 train turns.yaml 'data.val={split: 0.1}'
says "streams cannot be divided into training and validation data"
expect 3 train turns.yaml net.carry=gru
says "net.carry: there is no RNN 'gru'; the net has lstm"
expect 3 train turns.yaml data.train.stride=2
says "examples of streams follow each other"
expect 4 train turns.yaml data.train.length=4000
says "too few for an example of 4000 and the next one in each of 6 streams"
finish
