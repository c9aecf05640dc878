#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small BERT with a classifier: fine-tuned on labelled texts, with what its tokenizer puts around them, evaluated and used.
. "$(dirname "$0")/common.sh"

cat >tokenizer.json <<'END'
{"version": "1.0", "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]", "special": true},
   {"id": 2, "content": "[CLS]", "special": true}, {"id": 3, "content": "[SEP]", "special": true}],
 "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
   "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
   "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "good": 4, "bad": 5, "not": 6, "film": 7, "book": 8, "a": 9, "very": 10, "##s": 11}}}
END
nouns=(film book films books)
{
  printf 'text\tlabel\n'
  for ((i = 0; i < 240; ++i)); do
    case $((i % 4)) in
      0) printf 'a very good %s\tpraise\n' "${nouns[i / 4 % 4]}" ;;
      1) printf 'a bad %s\tblame\n' "${nouns[i / 4 % 4]}" ;;
      2) printf 'not good, %s\tblame\n' "${nouns[i / 4 % 4]}" ;;
      3) printf 'A %s not bad\tpraise\n' "${nouns[i / 4 % 4]}" ;;
    esac
  done
} >texts.tsv
bert() { # ARGUMENT...
  expect 0 train "$source_dir/configs/text/bert_base.yaml" -q \
    "data.train={source: labelled_text, path: texts.tsv, tokenizer_file: tokenizer.json, special_tokens: true, shuffle: true}" \
    "data.val={source: labelled_text, path: texts.tsv}" data.batch_size=16 vars.length=10 vars.positions=16 vars.width=32 vars.heads=4 vars.units=2 "$@"
}
bert --out run train.epochs=12 "train.optimizer={name: adamw, lr: 0.002}" train.lr_schedule=null vars.dropout=0.05
expect 0 eval run --json
holds "it has not learnt: $(head -c 300 stdout)" grep -qE '"accuracy": *(1(\.0)?|0\.9[5-9][0-9]*)\b' stdout
printf 'a very good book\nnot good, film\n' >new.txt
expect 0 infer run new.txt --format csv
holds "the classes are others: $(cat stdout)" bash -c 'grep -q praise <(sed -n 2p stdout) && grep -q blame <(sed -n 3p stdout)'

# --- the class of a text does not depend on how far it is padded
expect 0 infer run new.txt --format csv -q && cp stdout short.csv
bert --out longer vars.length=16 train.weights.file=run train.weights.map=null train.epochs=0
expect 0 infer longer new.txt --format csv -q && cp stdout long.csv
holds "padding changes probabilities: $(cat short.csv long.csv)" cmp -s short.csv long.csv

# --- what is refused
expect 3 train "$source_dir/configs/text/bert_base.yaml" --out no -q "data.train={source: labelled_text, path: texts.tsv, special_tokens: true}" \
  "data.val={source: labelled_text, path: texts.tsv}"
says "special_tokens = 'True' is for tokenizer_file"
expect 0 tokenize texts.tsv --train 280 --save bare.json
expect 3 train "$source_dir/configs/text/bert_base.yaml" --out no -q "data.train={source: labelled_text, path: texts.tsv, tokenizer_file: bare.json, special_tokens: true}" \
  "data.val={source: labelled_text, path: texts.tsv}"
says "puts none around a text"
finish
