#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Help on exit codes, man pages, completion: all derived from the program's declarations.
. "$(dirname "$0")/common.sh"
export COLUMNS=1000 # lines as long as they are

commands=$("$program" --help | sed -n '/^Subcommands:/,$p' | awk '/^  [a-z]/ {print $1}')
holds "no commands found in --help" test "$(echo "$commands" | wc -w)" -ge 12

# --- commands in the order of their use, before topics and codes
holds "--help does not begin with the commands of every day" test "$(head -7 <<<"$commands" | xargs)" = "init check train eval infer generate export"
expect 0 help
holds "help lists other commands" test "$(sed -n '2,/^$/p' stdout | awk 'NF {print $1}')" = "$commands"

# --- lines fit: 80 columns where nobody says another width, and no word is lost
# fits COLUMNS ARGUMENT...: no line of the output has more columns; its words are those of long lines.
fits() {
  local columns=$1 whole
  shift
  "$program" "$@" >whole
  if [ "$columns" = unknown ]; then (unset COLUMNS && "$program" "$@") >fitted; else COLUMNS=$columns "$program" "$@" >fitted; fi
  [ "$columns" != unknown ] || columns=80
  holds "$* in $columns columns: $(awk -v most="$columns" 'length > most' fitted | head -1)" \
    test "$(awk -v most="$columns" 'length > most' fitted | wc -l)" -eq 0
  for whole in whole fitted; do tr -s ' \n' '\n\n' <$whole | grep -vxF -e '\' -e '#' >$whole.words; done
  holds "$* in $columns columns loses words" cmp -s whole.words fitted.words
}
for columns in unknown 80 72 120; do
  fits $columns --help
  fits $columns help
  fits $columns help keys
  fits $columns ops
  if [ $columns != unknown ] && [ $columns -ge 80 ]; then fits $columns nets; fi
done
for command in $commands; do fits 80 "$command" --help; done
for topic in net blocks repeat expressions list csv photos fine-tuning report train transforms optimizer Convolution 3 data; do fits 80 help $topic; done
fits 80 ops Convolution

# --- every code
expect 0 help
cp stdout codes
for code in 0 1 2 3 4 5 6 7 8 9 130 143; do
  holds "help does not list $code" grep -q "^ *$code  " codes
  expect 0 help $code
  prints "$code ("
  prints "What to do:"
done
expect 0 help configuration
cp stdout by_name
expect 0 help 3
holds "a name explains another code than its number" cmp -s by_name stdout
expect 0 help --json
holds "--json says other than JSON" sh -c 'tr -d "\n" <stdout >line && "$0" json <line' "$helper"
expect 2 help confguration
says "unknown command, key, operator or exit code 'confguration'; did you mean 'configuration'?"
expect 2 help 77
says "\`mxtrain help\` lists the codes and topics, \`mxtrain help keys\` the keys, \`mxtrain ops\` the operators"
expect 0 help check
prints "Usage: mxtrain check "

# --- pages: each is listed, and its example of a net is one
expect 0 help
cp stdout codes
for page in net blocks repeat expressions list csv; do
  holds "help does not list $page" grep -q "^  mxtrain help $page  " codes
  expect 0 help $page
  prints "$page: "
  holds "a line of $page is too long" test "$(sed '/^Keys:/,$d' stdout | awk '{ print length }' | sort -n | tail -1)" -le 120
  [ $page = list ] || [ $page = csv ] && continue
  { sed '/^Keys:/,$d' stdout | grep '^    ' && echo '    data: {train: {source: mnist, path: digits}}'; } >page.yaml
  expect 0 plan page.yaml
done
expect 0 help net
prints "net.layers ("
expect 0 help repeat --json
prints '"topic":"repeat"'
for page in photos fine-tuning report calibration resume progress gpu; do
  expect 0 help $page
  prints "$page: "
  holds "a line of $page is too long" test "$(awk '{ print length }' stdout | sort -n | tail -1)" -le 120
done
for word in temperature cuda continue; do expect 0 help $word; done
# each choice has a sentence of its own, and what all take is said once
expect 0 help train.lr_schedule
prints "  cosine: half a cosine from the base rate"
prints "  all but one_cycle take, too:"
holds "a parameter of all schedules is said more than once" test "$(grep -c 'warmup_from (' stdout)" -eq 1
expect 0 help cosine
prints "warmup_from ("
expect 0 help train.optimizer
prints "  adamw: adam with weight decay apart from the gradient"
expect 0 help fine_tuning
prints "mxtrain init photos --net efficientnet_lite0 --weights"
expect 2 help repeet
says "did you mean 'repeat'?"
expect 0 help lr
prints "train.optimizer.lr "
# an operator, and a name that a key and a transform share
for flag in "" --json; do
  expect 0 ops Convolution ${flag:+"$flag"}
  cp stdout by_ops
  expect 0 help Convolution ${flag:+"$flag"}
  holds "help Convolution $flag differs from ops" cmp -s by_ops stdout
done
expect 2 help Convolutoin
says "did you mean 'Convolution'?"
expect 0 help normalize
prints "data.train.normalize ("
prints "  for data.train.transforms"
expect 0 help interpolation
prints "(bilinear | bicubic | nearest | area | auto | cubic, default auto: how a new pixel is made of old ones; auto: area"
for word in limits loop nix; do
  expect 2 help $word
  says "unknown command, key, operator or exit code '$word'; \`mxtrain help\` lists the codes and topics"
done
# the tables of the pages are read as they say
expect 0 help csv
sed -n '/^    a,b/,/^$/s/^    //p' stdout | sed '/^$/d' >points.csv
{ cat points.csv; sed 1d points.csv; } >table.csv
write_points
mv table.csv points.csv
expect 0 train points.yaml --out table -q

# --- a missing operator is not taken for another
expect 3 ops Proposal
says "there is no operator 'Proposal': not supported yet; \`mxtrain ops\` lists the operators, and a plug-in can add more"
expect 3 ops LSTM
says "did you mean RNN: {mode: lstm"
expect 0 ops RNN
prints "projection_size"
expect 0 ops
for group in layers losses "elementwise functions" "optimizer updates, chosen by train.optimizer (not layers)"; do
  holds "ops has no group $group" grep -qxF "$group:" stdout
done
holds "an update is no step of an optimizer" sh -c "sed -n '/^optimizer updates/,\$p' stdout | grep -q '^  adam_update '"
holds "a layer is no layer" sh -c "sed -n '/^layers:/,/^\$/p' stdout | grep -q '^  SliceChannel '"
expect 0 ops LayerNorm
prints "Inputs: data, gamma, beta"
expect 0 ops adam_update --json
prints '"group": "optimizer updates'

# --- man pages: one for each command, which roff takes without a warning
expect 0 help --man-dir man
for command in $commands; do
  holds "there is no man page of $command" test -s "man/mxtrain-$command.1"
  for flag in $("$program" "$command" --help | grep -oE -- ' --[a-z-]+' | sort -u); do
    [ "$flag" = --help ] || [ "$flag" = --version ] && continue
    holds "mxtrain-$command.1 lacks $flag" grep -qF -- "$(echo "$flag" | sed 's/-/\\-/g')" "man/mxtrain-$command.1"
  done
done
expect 0 help --man train
holds "--man and --man-dir differ" cmp -s stdout man/mxtrain-train.1
if command -v groff >/dev/null; then
  for page in man/*.1; do
    groff -man -ww -Tutf8 "$page" >/dev/null 2>warnings
    holds "groff warns of $page: $(head -1 warnings)" test ! -s warnings
  done
fi

# --- bash: what is offered at the end of a line
expect 0 completion bash
cp stdout mxtrain.bash
cat >ask.bash <<'END_OF_ASK'
source ./mxtrain.bash
COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
_mxtrain
printf '%s\n' "${COMPREPLY[@]}"
END_OF_ASK
# offers LINE WORD...: just these
offers() {
  checks=$((checks + 1))
  local line=$1
  shift
  local said
  said=$(bash ask.bash "$line" 2>&1 | tr '\n' ' ')
  [ "$said" = "$* " ] || fail "completion of '$line': '$said', expected '$*'"
}
offers "mxtrain tra" train
offers "mxtrain infer model --format " table csv jsonl coco yolo
offers "mxtrain train c.yaml --engine n" naive
offers "mxtrain --color a" auto always
offers "mxtrain train c.yaml data.cac" data.cache= data.cache_bytes=
offers "mxtrain train c.yaml data.cache=r" ram
offers "mxtrain train c.yaml train.optimizer=nag" nag
offers "mxtrain train c.yaml train.optimizer.mom" train.optimizer.momentum=
offers "mxtrain train c.yaml data.batch_size=a" auto
offers "mxtrain ops Convo" Convolution
offers "mxtrain completion " bash zsh fish
offers "mxtrain help 1" 1 10 129 130 143
offers "mxtrain train --resume-f" --resume-from
offers "mxtrain eval --resume-f" ""
touch net.yaml
offers "mxtrain train net.y" net.yaml
for command in $commands; do
  bash ask.bash "mxtrain $command -" >offered
  for flag in $("$program" "$command" --help | grep -oE -- ' --[a-z0-9-]+' | grep -v version | sort -u); do
    holds "completion of $command lacks $flag" grep -qxF -- "$flag" offered
  done
done

# --- zsh and fish take theirs, where they are installed
for shell in zsh fish; do
  expect 0 completion $shell
  cp stdout "mxtrain.$shell"
  for word in train.optimizer.momentum= resume-from Convolution; do holds "completion $shell lacks $word" grep -qF -- "$word" "mxtrain.$shell"; done
  if command -v $shell >/dev/null; then holds "$shell does not read its script" $shell -n "mxtrain.$shell"; fi
done
expect 2 completion tcsh
finish
