#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Classes of texts: from a table to predictions.
. "$(dirname "$0")/common.sh"

# Which of three classes a text has is told by a pair of words: "not good" is bad.
class_of() { case $1 in 0) echo good ;; 1) echo bad ;; *) echo none ;; esac }
text_of() { # CLASS NUMBER
  local words=(film day house time story scene light voice)
  local before="The ${words[$2 % 8]} of ${words[$2 / 8 % 8]} $2"
  case $1 in 0) echo "$before is good, really ${words[$2 % 5]}" ;; 1) echo "$before is not good ${words[$2 % 7]}" ;; *) echo "$before not ${words[$2 % 6]} is" ;; esac
}
rows() { # FROM TO: label, text
  for ((i = $1; i < $2; ++i)); do printf '%s\t%s\n' "$(class_of $((i % 3)))" "$(text_of $((i % 3)) "$i")"; done
}
{ printf 'label\ttext\n' && rows 0 240; } >train.tsv
{ printf 'label\ttext\n' && rows 240 300; } >validation.tsv
rows 300 330 | cut -f2 >new.txt
rows 300 330 | sed 's/\(.*\)\t\(.*\)/{"text": "\2", "label": "\1"}/' >new.jsonl

cat >bag.yaml <<'END'
name: bag
vars: {length: 24, width: 16}
net:
  input: ["${length}"]
  layers:
    - EmbeddingBag: {name: bag, input_dim: "${tokens}", output_dim: "${width}", padding: "${tokens - 1}", sparse_grad: true}
    - FullyConnected: {name: scores, num_hidden: "${classes}"}
    - SoftmaxOutput: {name: softmax}
data:
  batch_size: 16
  train: {source: labelled_text, path: train.tsv, lowercase: true, split_punctuation: true, ngrams: 2, buckets: 500, shuffle: true}
  val: {source: labelled_text, path: validation.tsv}
train: {epochs: 12, optimizer: {name: adam, lr: 0.02}, initializer: {name: uniform, scale: 0.1}}
END

# --- words and pairs of them, of which a step updates the rows that it reads
expect 0 check bag.yaml
prints "240 training examples, 60 for validation"
expect 0 train bag.yaml --out run
says "train.tsv: 240 texts, "
says "2-grams in 500 buckets"
says "examples/s"
last() { awk -F, -v want="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == want) c = i } END { print int(1000 * $c) }' run/metrics.csv; }
holds "the texts are not learned: accuracy $(last val_accuracy)" test "$(last val_accuracy)" -ge 950
expect 0 verify-resume bag.yaml --steps 7
expect 0 train bag.yaml --out threads --threads 1 -q
holds "another number of threads gives another model" cmp -s <(tail -1 run/metrics.csv | cut -d, -f1-3,6-9) <(tail -1 threads/metrics.csv | cut -d, -f1-3,6-9)

# --- evaluation and predictions
expect 0 eval run
prints "confusion matrix"
expect 0 eval run new.jsonl --json
prints '"examples":30'
expect 0 eval run new.jsonl --predictions each.csv
expect 0 infer run new.txt --format csv --top-k 2
prints "file,predicted,score,predicted_2,score_2"
prints "new.txt:1,good,"
prints "new.txt:2,bad,"
cut -d, -f2,3 stdout >of_lines
expect 0 infer run new.jsonl --format csv --top-k 2
holds "JSON lines are predicted otherwise than lines of text" cmp -s of_lines <(cut -d, -f2,3 stdout)
holds "the number of predictions is not that of texts" test "$(wc -l <of_lines)" -eq 31
{ printf 'text\n' && cat new.txt; } | tr -d , >unlabelled.tsv
expect 0 infer run unlabelled.tsv --format csv
prints "unlabelled.tsv:2,good,"
"$program" infer run - --format csv <new.txt >stdout 2>stderr
prints "/dev/stdin:2,bad,"
printf '\n' >blank.txt && expect 0 infer run blank.txt
says "a text is empty"
printf 'label\ttext\ngood\tThe day is not good day\n' >wrong.tsv
expect 0 eval run wrong.tsv
prints "good predicted as bad"
prints "The day is not good day"
expect 0 eval run wrong.tsv --json
prints '"text":"The day is not good day"'
printf 'label\ttext\ngood\tThe day is not good \xff day\n' >bytes.tsv
expect 0 eval run bytes.tsv
holds "mistakes.csv is not UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null run/eval/mistakes.csv
holds "the text is not in mistakes.csv" grep -q "The day is not good . day" <(sed 's/\xef\xbf\xbd/./' run/eval/mistakes.csv)

# --- several labels of a text
sed 's/^good/good;any/; s/^bad/bad;any/; s/^none//; s/^label/label/' train.tsv >sets.tsv
sed 's/SoftmaxOutput/LogisticRegressionOutput/; s/train.tsv, /train.tsv, label_delim: ";", /; s/path: train/path: sets/; s/^  val: .*/  val: {split: 0.1}/' bag.yaml >sets.yaml
expect 0 train sets.yaml --out sets -q
expect 0 infer sets new.txt --format jsonl
prints '"any"'
expect 0 init sets.tsv --output of_sets.yaml
prints "several classes of a text with ';' between them (label_delim)"
expect 0 check of_sets.yaml
expect 0 train of_sets.yaml --out of_sets -q train.epochs=1 train.max_steps=3

# --- a configuration for a file, with convolutions
expect 0 init train.tsv
prints "240 texts in 3 classes (bad, good, none), validation.tsv to validate"
prints "the text is in text, the label in label"
expect 0 check train.yaml
expect 0 train train.yaml --out cnn -q train.epochs=6
expect 0 infer cnn new.txt
prints "good 0."
expect 0 init new.jsonl --json
prints '"classes":["bad","good","none"]'
expect 0 check new.yaml
# Texts of two words are texts where the keys or columns say so, else what is missing is said.
for i in $(seq 40); do echo "{\"text\": \"good film $((i % 7))\", \"label\": \"yes\"}"; echo "{\"text\": \"bad film\", \"label\": \"no\"}"; done | sed 's/ film [0-9]*/ film/' >short.jsonl
expect 0 init short.jsonl
prints "80 texts in 2 classes (no, yes)"
prints "the text is in text, the label in label"
expect 0 train short.yaml --out short -q train.epochs=1
sed 's/"text"/"phrase"/' short.jsonl >phrases.jsonl
expect 8 init phrases.jsonl
says "of texts with a label each: the columns or keys text and label, or others with three words or more in most texts and few different labels"
{ printf 'phrase\tlabel\n'; for _ in $(seq 40); do printf 'good film\tyes\nbad film\tno\n'; done; } >phrases.tsv
expect 0 init phrases.tsv
prints "1 of words, categories with a vector each"
prints "texts of fewer than three words are categories here; to learn from the words in 'phrase', name that column text, and what is predicted label"
sed -i 1s/phrase/text/ phrases.tsv
expect 0 init phrases.tsv --overwrite
prints "80 texts in 2 classes (no, yes)"
mkdir folder && cp train.tsv validation.tsv folder && echo notes >folder/readme.txt
expect 0 init folder
prints "240 texts in 3 classes (bad, good, none), folder/validation.tsv to validate"
head -2 train.tsv >few.tsv && expect 4 init few.tsv
says "few.tsv: 2 lines are too few to tell what the columns hold; at least 4 are needed"
expect 0 export cnn cnn.onnx
says "in small letters"
expect 0 export run bag.onnx

# --- what check finds
{ cat train.tsv && sed -n 2p validation.tsv && printf 'bad\t%s\ngood\t\n' "$(sed -n 2p train.tsv | cut -f2)"; } >odd.tsv
expect 9 check bag.yaml data.train.path=odd.tsv vars.length=6
says "of validation"
says "in two classes"
says "is empty"
says "cut"

{ head -20 train.tsv && printf 'bad\t\ngood\t \n'; } >empty.tsv
expect 0 check bag.yaml data.train.path=empty.tsv
says "note: 2 texts are empty"

# --- what does not fit
expect 3 train bag.yaml --out none data.val.lowercase=false
says "data.val.lowercase: validation data is read as the training data, where it is true"
expect 0 check bag.yaml data.val.lowercase=true
expect 0 check run/config.yaml
expect 3 train bag.yaml --out none data.train.label_column=kind
says "has no column 'kind'"
expect 3 train bag.yaml --out none data.train.buckets=0
says "n-grams need buckets"
printf 'label\ttext\ngood\t"never closed\n' >open.tsv
expect 4 train bag.yaml --out none data.train.path=open.tsv
says "open.tsv:2: a quote is opened and never closed"
printf 'label\ttext\nother\tsome words\n' >other.tsv
expect 4 eval run other.tsv
says "other.tsv:2: the label 'other' is not one of the 3 classes"
expect 3 train bag.yaml --out none train.grad_accum=2
says "a step of 2 batches"
expect 3 train bag.yaml --out none train.kvstore.workers=2
says "several workers"
expect 3 train bag.yaml --out none train.optimizer.name=lamb
says "measures more than a row at a time"
printf 'x,y\n1,2\n3,4\n5,6\n7,8\n9,1\n' >numbers.csv
expect 4 init numbers.csv
says "no column is left to learn 'y' from: x (counts the rows)"

finish
