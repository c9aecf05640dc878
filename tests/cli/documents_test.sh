#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the documents name exists: files in backticks, functions beside the files of the tour, commands with their flags, configuration keys,
# environment variables. The change log and the decisions tell of the past and do not count; tests/sources/vocabulary_test.cc follows links.
. "$(dirname "$0")/common.sh"
export COLUMNS=1000
cd "$source_dir" || exit 1
mapfile -t present < <(ls README.md lib/README.md lib/docs/*.md lib/docs/user_guide/*.md | grep -v CHANGELOG)
files=$(mktemp)
trap 'chmod -R u+w "$work"; rm -rf "$work" "$files"' EXIT
find . -path ./build -prune -o -path ./.git -prune -o \( -type f -o -type d \) -print | sed 's|^\./||' >"$files"

# --- files in backticks, by the end of their paths, but those of MXNet; tests/sources/layers_test.cc checks the table of packages, with headers of systems
named=0
for document in "${present[@]}"; do
  while read -r path; do
    named=$((named + 1))
    path=${path#…/}
    holds "$document names $path, which is not there" grep -qE "(^|/)$(sed 's/[.+]/\\&/g; s/\*/[^\/]*/g' <<<"$path")\$" "$files"
  done < <(sed '/^| package |/,/^$/d' "$document" | grep -oE '`(…/)?[A-Za-z0-9_*./-]+\.(cc|h|cu|cuh|sh|py|cmake)`' | tr -d '`' |
    grep -vE '^(/|\*|lib/registrations.cc$|src/operator/|dmlc/|mxnet/)' | sort -u)
done
holds "only $named files are named" test "$named" -gt 150

# --- the tour: what a row names beside a file is in it, or in its header
rows=0
while IFS='|' read -r _ file functions _; do
  path=$(grep -oE '`[^`]+`' <<<"$file" | head -1 | tr -d '`')
  case $path in …/*) path=lib/mxtrain/${path#…/} ;; app/*) ;; *) continue ;; esac
  for function in $(grep -oE '`[A-Za-z_:]+`' <<<"$functions" | tr -d '`'); do
    rows=$((rows + 1))
    holds "lib/README.md: there is no $function in $path" grep -qsw -- "${function##*::}" "$path" "${path%.cc}.h"
  done
done < <(grep '^| `' lib/README.md)
holds "the tour names only $rows functions" test "$rows" -gt 30

# --- commands and flags
commands=$("$program" --help | sed -n '/^Subcommands:/,$p' | awk '/^  [a-z]/ {print $1}')
common=$("$program" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u)
for command in $commands; do "$program" "$command" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u >"$work/$command.flags"; done
lines=0
while IFS=: read -r document line; do
  command=$(grep -oE 'mxtrain [a-z][a-z-]*' <<<"$line" | head -1 | cut -d' ' -f2)
  lines=$((lines + 1))
  holds "$document: there is no command '$command': $line" grep -qxF -- "$command" <<<"$commands"
  for flag in $(sed 's/#.*//; s/^.*mxtrain //' <<<"$line" | grep -oE -- ' --[a-z][a-z-]*'); do
    holds "$document: $command has no flag $flag: $line" grep -qxF -- "$flag" <(printf '%s\n' "$common" && cat "$work/$command.flags")
  done
done < <(grep -oHE '(^|`|&& )mxtrain [a-z][a-z-]*[^`|&]*' "${present[@]}")
holds "only $lines commands are shown" test "$lines" -gt 60

# --- keys
keys=0
while IFS=: read -r document key; do
  keys=$((keys + 1))
  "$program" help "$key" >/dev/null 2>&1 || "$program" help "${key%.*}" 2>/dev/null | grep -qw -- "${key##*.}" ||
    fail "$document: there is no key $key"
  checks=$((checks + 1))
done < <(grep -oHE '`(train|data|net)\.[a-z_]+(\.[a-z_]+)*[(]?' "${present[@]}" | grep -v '($' | tr -d '`' | sort -u)
holds "only $keys keys are named" test "$keys" -gt 60

# --- tests and the packages that scripts/install_deps.sh installs: what it does not bring is asked for, and a test without it says so
for script in tests/cli/*.sh; do
  for tool in python3 git jq curl zip unzip strace; do
    grep -vE '^ *#|^#' "$script" | grep -qE "(^|[|;(&] *|\$\(|if |! )$tool " || continue
    holds "$script runs $tool, and does not look whether it is there" grep -qE "command -v $tool" "$script"
  done
done

# --- environment variables and options of the build
while IFS=: read -r document variable; do
  holds "$document: nothing reads $variable" grep -rqw --include='*.cc' --include='*.h' --include='*.sh' --include='*.py' --include='*.txt' \
    --include='*.cmake' --exclude=documents_test.sh -- "$variable" app lib CMakeLists.txt scripts tests
done < <(grep -oHE 'MXTRAIN_[A-Z][A-Z0-9_]+' "${present[@]}" | sort -u)
cd "$work" || exit 1
finish
