#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verifies the CUDA backend on a machine with a GPU, its driver, CUDA's libraries and cuDNN; needs nothing else.
#   gpu_check.sh agree [MNIST_FOLDER]   the GPU tests; then the program: results on the GPU must match the CPU
#   gpu_check.sh bench                  speed and memory compared with PyTorch, if python3 has torch, and what limits them
#   gpu_check.sh sanitize               the operators' tests under compute-sanitizer
#   gpu_check.sh all [MNIST_FOLDER]     all three
#   gpu_check.sh first                  what to run where a GPU can be had for ten minutes only: within 540 s the most important of each,
#                                       in order of value, and all logs in gpu_check_first.tar.gz
#   gpu_check.sh second                 after it, within 540 s: what only several GPUs show (NCCL, copies, losses, scaling), and a soak: a run
#                                       that is killed and resumed, and memory that does not grow; all logs in gpu_check_second.tar.gz
# The tarball of `package.sh --cuda` contains it as libexec/mxtrain/gpu_check.sh. In the tree it uses build/cuda-dev, or the build
# folder MXTRAIN_BUILD. Each part ends within 8 minutes (GPU_CHECK_SECONDS, 470; first and second 540); `bench` repeats until then, at most GPU_CHECK_ROUNDS
# (9) times. The logs of all steps are kept in GPU_CHECK_LOGS, by default a new folder. A table comes last; if a line says FAIL, 1 is
# the exit code.
set -uo pipefail

usage() {
  sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}
case "${1:-} $#" in
  "agree "[12] | "bench 1" | "sanitize 1" | "first 1" | "second 1") parts=("$1") ;;
  "all "[12]) parts=(agree bench sanitize) ;;
  *) usage ;;
esac
asked=$* mnist=${2:-}
[[ -z $mnist || -e $mnist/train-images-idx3-ubyte.gz || -e $mnist/train-images-idx3-ubyte ]] || {
  echo "gpu_check.sh: $mnist does not contain train-images-idx3-ubyte.gz" >&2
  exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
if [[ -x $here/test_gpu ]]; then  # an unpacked tarball
  program=$here/../../bin/mxtrain configs=$here/../../share/mxtrain/configs tests=$here rival=$here/rival_torch.py
else
  build=${MXTRAIN_BUILD:-$here/../build/cuda-dev}
  program=$build/bin/mxtrain configs=$here/../configs tests=$build/bin rival=$here/../tests/bench/rival_torch.py
fi
for needed in "$program" "$tests/test_gpu" "$tests/test_gpu_operators"; do
  [[ -x $needed ]] || { echo "gpu_check.sh: $needed does not exist; build it, or set MXTRAIN_BUILD to the build folder" >&2; exit 2; }
done
[[ $1 == first || $1 == second ]] && allowed=540 || allowed=470
part_seconds=${GPU_CHECK_SECONDS:-$allowed} most_rounds=${GPU_CHECK_ROUNDS:-9}
soak_seconds=${GPU_CHECK_SOAK:-100}
logs=${GPU_CHECK_LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/gpu-check-XXXXXX")}
mkdir -p "$logs"
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-check-work-XXXXXX")
exec </dev/null

# ---- Steps and their results.

deadline=0  # of the part, by the clock SECONDS
table=()    # lines of the summary
failed=0

# record RESULT SECONDS CHECK TEXT: a line of the summary. RESULT: ok, FAIL or skip.
record() {
  [[ $1 == FAIL ]] && failed=$((failed + 1))
  table+=("$(printf '%-4s %4s  %-22s %.420s' "$1" "$2" "$3" "$4")")
  echo "${table[-1]}"
}

file_of() { echo "$logs/${1//[^a-zA-Z0-9_.]/-}"; }

# run NAME LIMIT COMMAND...: runs for at most LIMIT seconds, and no longer than the part. Sets `code`, `took` and `log`.
run() {
  local limit=$2 begin=$SECONDS
  log=$(file_of "$1").log
  shift 2
  limit=$((limit < deadline - SECONDS ? limit : deadline - SECONDS))
  if ((limit > 0)); then
    timeout -k 5 "$limit" "$@" >"$log" 2>&1 &
    child=$!
    wait $child
    code=$?
    [[ $code -eq 124 || $code -eq 137 ]] && echo "stopped after $limit s" >>"$log"
  else
    echo "no time was left for it" >"$log"
    code=124
  fi
  took=$((SECONDS - begin))
}

# Why the last step failed: its exit code and the first error it printed, else its last line.
why() {
  local line=""
  [[ $code -eq 124 || $code -eq 137 ]] || line=$(grep -m 1 'error: ' "$log")
  echo "exit code $code: ${line:-$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)}"
}

# must CHECK NAME LIMIT COMMAND...: a step of a check. If it fails, the check fails: prints the end of the log and records it.
must() {
  local check=$1
  shift
  run "$@"
  [[ $code -eq 0 ]] && return
  tail -n 8 "$log" | sed 's/^/  | /' | cut -c 1-200
  record FAIL "$took" "$check" "$(why)"
  return 1
}

# shellcheck disable=SC2317  # it is called at the end, by a trap
summary() {
  rm -rf "$work"
  printf '\n== gpu_check.sh %s: %s checks, %s failed; the logs lie in %s\n' "$asked" ${#table[@]} "$failed" "$logs"
  echo "     sec.  check                  what was seen"
  [[ ${#table[@]} -eq 0 ]] || printf '%s\n' "${table[@]}"
}

# Checks for a GPU; without one nothing else can be checked. If the program does not find CUDA's libraries, asks python3 for those of
# its packages.
find_gpu() {
  local gpu helped=""
  run devices 60 "$program" devices
  if grep -q 'was not found' "$log" && [[ -z ${MXTRAIN_CUDA_PATH:-} ]]; then
    MXTRAIN_CUDA_PATH=$(python3 -c 'import glob, os, sys
print(":".join(folder for path in sys.path for folder in glob.glob(os.path.join(path, "nvidia", "*", "lib"))))' 2>/dev/null)
    export MXTRAIN_CUDA_PATH
    helped="; with MXTRAIN_CUDA_PATH=$MXTRAIN_CUDA_PATH"
    run devices 60 "$program" devices
  fi
  gpu=$(sed -n 's/^gpu:0 *//p' "$log")
  if [[ $code -eq 0 && -n $gpu ]]; then
    record ok "$took" devices "$gpu; $(sed -n 's/^cuda *//p' "$log")$helped"
  else
    record FAIL "$took" devices "$(grep '^gpu' "$log" || why); nothing else can be checked without one"
    return 1
  fi
}

# ---- agree

# side_by_side PROGRAM N: the cases of a test program, in N processes at the same time; fails if one of them does.
# shellcheck disable=SC2317  # a process of its own calls it
side_by_side() {
  local program=$1 n=$2 cases each i children=() code=0
  cases=$("$program" --count | sed -n 's/.*filters: *\([0-9]*\)$/\1/p')
  each=$(((${cases:-0} + n - 1) / n))
  ((each > 0)) || return 1
  for ((i = 0; i < n; ++i)); do
    "$program" --order-by=rand --rand-seed=1 --first=$((i * each + 1)) --last=$((i * each + each)) >"$work/part-$i" 2>&1 &
    children+=($!)
  done
  trap 'kill "${children[@]}"; cat "$work"/part-*; exit 143' TERM
  for i in "${!children[@]}"; do
    wait "${children[i]}" || code=$?
    cat "$work/part-$i"
  done
  return "$code"
}

# doctests CHECK PROGRAM LIMIT [ARGUMENT...]: runs a test program; counts its cases and lists those that failed. Without arguments as many
# processes as half of the processors, at most 8, share the cases of the operators.
doctests() {
  local check=$1 cases failing seen="" processes=$(($(nproc) / 2 < 8 ? $(nproc) / 2 : 8))
  if [[ $2 == test_gpu_operators && $# -eq 3 && $processes -gt 1 ]]; then
    export -f side_by_side
    export work
    run "$2" "$3" bash -c 'side_by_side "$@"' side_by_side "$tests/$2" "$processes"
  else
    run "$2" "$3" "$tests/$2" "${@:4}"
  fi
  cases=$(sed -n 's/^\[doctest\] test cases: *\([0-9]*\) *|.*/\1/p' "$log" | tail -n 1)  # each part counts the cases of all
  failing=$(awk '/^TEST CASE:/ { name = substr($0, 13) } / ERROR: / { if (!seen[name]++) print name }' "$log")
  if [[ $code -eq 0 && ${cases:-0} -gt 0 ]]; then
    record ok "$took" "$check" "$cases cases"
    return
  fi
  grep -A 6 ' ERROR: ' "$log" | head -n 40 | sed 's/^/  | /' | cut -c 1-200
  [[ -z $cases ]] || seen="$cases cases, "
  [[ -z $failing ]] || seen+="$(wc -l <<<"$failing") failed ($(paste -sd ';' <<<"$failing" | cut -c 1-250)), "
  record FAIL "$took" "$check" "$seen$(why)"
}

# The loss of each step, computed from the running means over the epoch in events.jsonl.
step_losses() {
  awk 'function number(key) {
         if (!match($0, "\"" key "\": *[-+.0-9eE]+")) return "nan"
         text = substr($0, RSTART, RLENGTH); sub(/^.*: */, "", text); return text + 0
       }
       /"event": *"step"/ {
         step = number("step")
         if (number("epoch") != epoch) { epoch = number("epoch"); before = step - 1; sum = 0 }
         now = number("loss") * (step - before); printf "%d %.9g\n", step, now - sum; sum = now
       }' "$1"
}

# loss_run CHECK NAME STEPS ARGUMENT...: trains, and keeps the loss of each step.
loss_run() {
  local check=$1 name=$2 steps=$3 out
  out=$work/${2//[^a-zA-Z0-9_.]/-}
  shift 3
  must "$check" "$name" 150 "$program" train "$@" train.max_steps="$steps" train.report_every=1 --deterministic --out "$out" --progress none ||
    return
  step_losses "$out/events.jsonl" >"$(file_of "$name").losses"
}

# compare_losses CHECK STEPS NAME OTHER MOST: each loss of the one run is within MOST of that of the other.
compare_losses() {
  local seen
  if seen=$(paste -d ' ' "$(file_of "$3").losses" "$(file_of "$4").losses" | awk -v steps="$2" -v most="$5" '
      function size(x) { return x < 0 ? -x : x }
      $1 == $3 && $4 != "" {
        apart = size($4 - $2) / size($2); last = $2; other = $4
        if (!n++) first = $2
        if (apart >= worst) { worst = apart; at = $1 }
      }
      END { printf "%d of %d steps, from %.4f to %.4f and %.4f; at most %.1e apart, at step %d", n, steps, first, last, other, worst, at
            exit !(n == steps && worst <= most) }'); then
    record ok "$took" "$1" "$seen"
  else
    record FAIL "$took" "$1" "$seen; $5 is allowed"
  fi
}

# losses CHECK STEPS MOST CONFIG...: each of the first STEPS losses on the GPU is within MOST of that on the CPU. LeNet's differences, 1e-9 in
# the first steps, grow to 4e-3 within 50.
losses() {
  local check=$1 steps=$2 most=$3 device
  shift 3
  for device in cpu gpu; do
    loss_run "$check" "$check on $device" "$steps" "$@" train.math=exact --device "$device" || return
  done
  compare_losses "$check" "$steps" "$check on cpu" "$check on gpu" "$most"
}

# repeats CHECK DEVICE CONFIG...: the same run twice gives the same checkpoint.
repeats() {
  local check=$1 device=$2 i
  shift 2
  for i in 1 2; do
    must "$check" "$check $i" 90 "$program" train "$@" train.max_steps=100 train.epochs=4 --device "$device" --deterministic --out "$work/repeat-$i" \
      --progress none || return
  done
  if cmp "$work/repeat-1/checkpoints/last" "$work/repeat-2/checkpoints/last" >"$log" 2>&1; then
    record ok "$took" "$check" "100 steps of LeNet: checkpoints of $(stat -L -c %s "$work/repeat-1/checkpoints/last") bytes"
  else
    record FAIL "$took" "$check" "$(tail -n 1 "$log")"
  fi
}

# learns TYPE CONFIG...: the net learns in mixed precision as in float32.
learns() {
  local check="LeNet in $1" amp=$1
  shift
  must "$check" "$check" 90 "$program" train "$@" train.amp="$amp" train.epochs=8 --min-metric 0.65 --device gpu --out "$work/$amp" --progress none &&
    record ok "$took" "$check" "$(grep -o 'best: epoch.*' "$log" | head -n 1)$(grep -o '  loss scale.*skipped' "$log" | tail -n 1)"
}

agree() {
  find_gpu || return
  doctests "tests of the GPU" test_gpu 150
  doctests "operators" test_gpu_operators 240

  made_images || return
  losses "LeNet, 50 steps" 50 8e-3 "${lenet[@]}"
  losses "ResNet-18, 10 steps" 10 1e-3 "${resnet[@]}"
  must resume resume 120 "$program" verify-resume "${lenet[@]}" --steps 60 --device gpu --deterministic &&
    record ok "$took" resume "$(tail -n 1 "$log")"
  repeats "two runs, same bits" gpu "${lenet[@]}"
  learns fp16 "$work/lenet.yaml"
  learns bf16 "$work/lenet.yaml"
  if [[ -z $mnist ]]; then
    record skip 0 MNIST "no folder of MNIST was given"
  else
    must MNIST mnist 240 "$program" train "${lenet[@]}" --device gpu --min-metric 0.99 --out "$work/mnist" --progress none &&
      record ok "$took" MNIST "$(grep -o 'best: epoch.*' "$log" | head -n 1); $(grep -o '[0-9.]* images/s in training' "$log")"
  fi
}

# Generates images, and sets what LeNet and ResNet-18 train on: `lenet`, `resnet`.
made_images() {
  local images=$work/images
  must data synth 60 "$program" synth "$images" --count 4000 --classes 8 --size 32 --seed 1 || return
  local as_lenet_reads="split: null, transforms: [{resize: [28, 28]}, {normalize: {mean: 0.5, std: 0.25}}]"
  cat >"$work/lenet.yaml" <<END
include: "$(realpath "$configs")/mnist/lenet.yaml"
data:
  train: {source: image_folder, path: "$images/train", $as_lenet_reads}
  val: {source: image_folder, path: "$images/val", $as_lenet_reads}
END
  lenet=("$work/lenet.yaml")
  [[ -z $mnist ]] || lenet=("$configs/mnist/lenet.yaml" "data.train.path=$mnist" "data.val.path=$mnist")
  resnet=("$configs/imagenet/resnet18.yaml" "data.train.path=$images/train" "data.val={split: 0.01}" vars.classes=8
    data.batch_size=8)
}

# ---- bench

# Check, configuration, batch, our settings, the rival's net and flags, minimum speed ratio. `fast` is compared with the rival's defaults
# and with TF32 in its products too. The last one trades time for memory: batch norms and activations are recomputed.
bench_cases=(
  "ResNet-50 bf16|imagenet/resnet50.yaml|256|train.amp=bf16|resnet50 --mode channels_last+compile --amp bf16|1.0"
  "ResNet-50 fast|imagenet/resnet50.yaml|256|train.math=fast|resnet50 --mode eager|1.0"
  "LeNet float32|mnist/lenet.yaml|64|train.math=fast|lenet --classes 10 --mode eager|3.0"
  "ResNet-50 fast, TF32|imagenet/resnet50.yaml|256|train.math=fast|resnet50 --mode channels_last --tf32 on|1.0"
  "ResNet-50 exact|imagenet/resnet50.yaml|256|train.math=exact|resnet50 --mode eager --tf32 off|1.0"
  "ResNet-50 fp16|imagenet/resnet50.yaml|256|train.amp=fp16|resnet50 --mode channels_last+compile --amp fp16|1.0"
  "ResNet-50, 3/4 memory|imagenet/resnet50.yaml|256|train.math=fast train.memory_budget=75%|resnet50 --mode eager|0.95"
)
most_memory=0.8  # of the rival's
most_host=0.1  # of the time of a step, in which the host pushes it

number() { sed -n "s/.*\"$1\": *\([-+.0-9eE]*\).*/\1/p"; }  # of a JSON object in one line

# By side and check: rates of all rounds, the last result, total seconds, and why there is no result.
declare -A rates results seconds refusals

# measure SIDE CHECK COMMAND...: one measurement of one contender. A failed one is not repeated.
measure() {
  local key="$1 $2" result
  shift 2
  [[ -z ${refusals[$key]:-} ]] || return
  run "$key" 170 "$@"
  seconds[$key]=$((${seconds[$key]:-0} + took))
  result=$(grep '"images_per_second"' "$log")
  if [[ $code -ne 0 || -z $result ]]; then
    refusals[$key]=$(why)
    return
  fi
  rates[$key]+="$(number images_per_second <<<"$result") "
  results[$key]=$result
}

bench_round() {
  local entry check config batch setting flags
  for entry in "${bench_cases[@]}"; do
    IFS='|' read -r check config batch setting flags _ <<<"$entry"
    # shellcheck disable=SC2086  # settings and flags are several words
    measure ours "$check" "$program" bench "$configs/$config" data.batch_size="$batch" $setting --device gpu --synthetic --json --rounds 1 \
      --seconds 3
    # shellcheck disable=SC2086
    [[ -z $torch ]] || measure torch "$check" python3 "$rival" $flags --batch "$batch" --device cuda --seconds 3
  done
}

median() {
  tr ' ' '\n' <<<"$1" | grep . | sort -g |
    awk '{ value[NR] = $1 } END { printf "%.1f", (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

# Our result and its limits: fractions of the rates of a large matrix product and a large copy. Fails if the host pushes too slowly, or if
# no captured graph was launched.
describe_ours() {
  awk -v batch="$(number batch <<<"$2")" -v rate="$(median "${rates["ours $1"]}")" -v bytes="$(number storage_peak_bytes <<<"$2")" \
    -v products="$(number share_of_matrix_product <<<"$2")" -v flops="$(number matrix_product_flops <<<"$2")" \
    -v traffic="$(number share_of_copy <<<"$2")" -v copy="$(number copy_bytes_per_second <<<"$2")" \
    -v host="$(number host_seconds_per_step <<<"$2")" -v most_host="$most_host" -v replays="$(number replays_per_step <<<"$2")" 'BEGIN {
      printf "%.1f images/s, %.0f MiB; arithmetic %.0f %% of %.1f TFLOP/s, traffic %.0f %% of %.0f GB/s, host %.0f us a step, %.1f %% of it " \
             "(wanted %.0f), %.2f graphs a step (wanted 1)", rate, bytes / 1048576, 100 * products, flops / 1e12, 100 * traffic, copy / 1e9,
             1e6 * host, 100 * host * rate / batch, 100 * most_host, replays
      exit !(host * rate / batch <= most_host && replays >= 0.99) }'
}

# Comparison with the rival: fails if a ratio misses its target.
compare_bench() {
  awk -v ours="$(median "${rates["ours $1"]}")" -v theirs="$(median "${rates["torch $1"]}")" -v least="$2" -v most="$most_memory" \
    -v our_bytes="$(number storage_peak_bytes <<<"${results["ours $1"]}")" \
    -v their_bytes="$(number peak_memory_bytes <<<"${results["torch $1"]}")" 'BEGIN {
      printf "torch %.1f images/s, %.0f MiB: speed %.2f of it (wanted %s), memory %.2f (wanted %s)", theirs, their_bytes / 1048576,
             ours / theirs, least, our_bytes / their_bytes, most
      exit !(ours / theirs >= least && our_bytes / their_bytes <= most) }'
}

record_bench() {
  local check=$1 batch=$2 least=$3 time result=skip ours compared
  time=$((${seconds["ours $check"]:-0} + ${seconds["torch $check"]:-0}))
  if [[ -z ${rates["ours $check"]:-} ]]; then
    compared=$(number images_per_second <<<"${results["torch $check"]:-}")
    record FAIL "$time" "$check" "batch $batch: ${refusals["ours $check"]}; torch: ${compared:-no} images/s"
    return
  fi
  if [[ -z ${rates["torch $check"]:-} ]]; then
    compared="no torch to compare with${refusals["torch $check"]:+: ${refusals["torch $check"]}}"
  elif compared=$(compare_bench "$check" "$least"); then
    result=ok
  else
    result=FAIL
  fi
  ours=$(describe_ours "$check" "${results["ours $check"]}") || result=FAIL
  record "$result" "$time" "$check" "batch $batch: $ours; $compared"
}

find_torch() {
  torch=$(python3 -c 'import torch, torchvision; assert torch.cuda.is_available(); print(torch.__version__)' 2>"$logs/torch.log") || torch=""
  if [[ -n $torch ]]; then
    record ok 0 torch "$torch"
  else
    record skip 0 torch "python3 has none that sees this GPU: $(tail -n 1 "$logs/torch.log")"
  fi
}

bench() {
  find_gpu || return
  find_torch
  local begin rounds=0 entry check batch least
  while ((rounds == 0 || rounds < most_rounds && deadline - SECONDS > SECONDS - begin)); do
    begin=$SECONDS
    bench_round
    rounds=$((rounds + 1))
  done
  echo "rounds: $rounds"
  for entry in "${bench_cases[@]}"; do
    IFS='|' read -r check _ batch _ _ least <<<"$entry"
    record_bench "$check" "$batch" "$least"
  done
}

# ---- sanitize

find_sanitizer() {
  local candidate
  for candidate in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer /opt/nvidia/nsight-compute/*/host/target-linux-x64/compute-sanitizer; do
    command -v "$candidate" && return
  done
}

# sanitize_with TOOL UNTIL: the cases in a fixed random order, several at a time, as many as time allows.
sanitize_with() {
  local tool=$1 until=$2 first done=0 wrong=0 begin=$SECONDS first_wrong="" slice=10
  for ((first = 1; first <= cases && until > SECONDS; first += slice)); do
    run "$tool $first" $((until - SECONDS)) "$sanitizer" --tool "$tool" --error-exitcode 99 "$tests/test_gpu_operators" --order-by=rand --rand-seed=1 \
      --first="$first" --last=$((first + slice - 1))
    [[ $code -ne 124 && $code -ne 137 ]] || break
    if [[ $first -eq 1 ]] && grep -q 'Device not supported' "$log"; then
      record skip "$took" "$tool" "compute-sanitizer: $(grep -m 1 'Device not supported' "$log")"
      return
    fi
    done=$((first + slice - 1 < cases ? first + slice - 1 : cases))
    [[ $code -eq 0 ]] && continue
    wrong=$((wrong + 1))
    [[ -n $first_wrong ]] ||
      first_wrong="$(why); $(grep -m 1 -E '^=+ *(Invalid|Error:|Uninit|Race|Program hit|Misaligned)' "$log"), in ${log##*/}"
  done
  if ((wrong > 0)); then
    record FAIL $((SECONDS - begin)) "$tool" "something in $wrong steps of $slice, in $done of $cases cases of operators: $first_wrong"
  elif ((done == 0)); then
    record FAIL $((SECONDS - begin)) "$tool" "not one step of $slice cases ended: $(tail -n 1 "$log")"
  else
    record ok $((SECONDS - begin)) "$tool" "nothing found in $done of $cases cases of operators"
  fi
}

sanitize() {
  find_gpu || return
  sanitizer=$(find_sanitizer)
  if [[ -z $sanitizer ]]; then
    record skip 0 "sanitize" "there is no compute-sanitizer on the PATH, nor in CUDA's folders"
    return
  fi
  must sanitize count 60 "$tests/test_gpu_operators" --count || return
  cases=$(sed -n 's/^\[doctest\] unskipped test cases.*: *//p' "$log")
  sanitize_with memcheck $((SECONDS + (deadline - SECONDS) / 2))
  sanitize_with racecheck "$deadline"
}

# ---- first

# ResNet-50 in bfloat16 beside each of PyTorch's modes, once. The log has the time of the GPU in every operator.
compare_modes() {
  local mode check
  measure ours "ResNet-50 bf16" "$program" bench "$configs/imagenet/resnet50.yaml" data.batch_size=256 train.amp=bf16 --device gpu --synthetic \
    --json --rounds 1 --seconds 3 --operators 1000
  for mode in channels_last+compile channels_last eager; do
    check="ResNet-50 bf16, $mode"
    rates["ours $check"]=${rates["ours ResNet-50 bf16"]:-} results["ours $check"]=${results["ours ResNet-50 bf16"]:-}
    refusals["ours $check"]=${refusals["ours ResNet-50 bf16"]:-}
    [[ -z $torch ]] || measure torch "$check" python3 "$rival" resnet50 --mode "$mode" --amp bf16 --batch 256 --device cuda --seconds 2
    record_bench "$check" 256 1.0
  done
}

first() {
  find_gpu || return
  doctests "tests of the GPU" test_gpu 100
  doctests "operators" test_gpu_operators 120
  find_torch
  compare_modes
  sanitizer=$(find_sanitizer)
  if [[ -n $sanitizer ]]; then
    run memcheck 100 "$sanitizer" --tool memcheck --error-exitcode 99 "$tests/test_gpu" -tc='*step*,*layouts*'
    if [[ $code -eq 0 ]]; then record ok "$took" memcheck "steps and layouts"; else record FAIL "$took" memcheck "$(why)"; fi
  else
    record skip 0 memcheck "there is no compute-sanitizer"
  fi
  made_images || return
  losses "LeNet, 50 steps" 50 8e-3 "${lenet[@]}"
  losses "ResNet-18, 10 steps" 10 1e-3 "${resnet[@]}"
  learns bf16 "$work/lenet.yaml"
  tar -czf gpu_check_first.tar.gz -C "$logs" . && echo "logs: $PWD/gpu_check_first.tar.gz"
}

# ---- second

scaling_wanted=0.9  # of the images/s of one GPU, times their number

# gpus_to N: the first N GPUs, as --device takes them.
gpus_to() { echo "gpu:$(seq -s , 0 $(($1 - 1)))"; }

# scale N [SETTING]: images/s of ResNet-50 in bfloat16, 256 for each of N GPUs.
scale() {
  measure ours "ResNet-50, GPUs: $1${2:+, $2}" "$program" bench "$configs/imagenet/resnet50.yaml" data.batch_size=$((256 * $1)) train.amp=bf16 \
    ${2:+"$2"} --device "$(gpus_to "$1")" --synthetic --json --rounds 1 --seconds 3
}

# record_scaling N KEY: beside one GPU.
record_scaling() {
  local check="ResNet-50, GPUs: $1" key="ours $2" one seen
  one=${rates["ours ResNet-50, GPUs: 1"]:-}
  if [[ -z ${rates[$key]:-} || -z $one ]]; then
    record FAIL "${seconds[$key]:-0}" "$check" "${refusals[$key]:-${refusals["ours ResNet-50, GPUs: 1"]:-no result}}"
  elif seen=$(awk -v n="$1" -v rate="$(median "${rates[$key]}")" -v one="$(median "$one")" -v wanted="$scaling_wanted" \
      -v replays="$(number replays_per_step <<<"${results[$key]}")" 'BEGIN {
        printf "%.1f images/s, %.3f of %d times one GPU (wanted %s), %.2f graphs a step", rate, rate / (n * one), n, wanted, replays
        exit !(rate >= wanted * n * one && replays >= 0.99 * n) }'); then
    record ok "${seconds[$key]}" "$check" "$seen"
  else
    record FAIL "${seconds[$key]}" "$check" "$seen"
  fi
}

# What only several GPUs show.
between_gpus() {
  local all n check batch=data.batch_size=$((32 * gpus)) wire=train.kvstore.wire=bfloat16
  all=$(gpus_to "$gpus")
  doctests "NCCL and copies" test_gpu 60 '-tc=*all GPUs*,*between GPUs*'
  grep -q "GPUs: $gpus\$" "$log" || record FAIL 0 NCCL "$(grep -m 1 NCCL "$log" || echo "the test did not sum over $gpus GPUs")"

  check="LeNet, GPUs: $gpus"
  loss_run "$check" "LeNet on one GPU" 50 "${lenet[@]}" "$batch" train.math=exact --device gpu &&
    loss_run "$check" "$check" 50 "${lenet[@]}" "$batch" train.math=exact --device "$all" &&
    compare_losses "$check" 50 "LeNet on one GPU" "$check" 1e-3
  loss_run "LeNet, $wire" "LeNet, $wire" 50 "${lenet[@]}" "$batch" train.math=exact "$wire" --device "$all" &&
    compare_losses "LeNet, $wire" 50 "LeNet on one GPU" "LeNet, $wire" 3e-2
  # Batch norm takes its statistics of a part: two parts of one GPU's batch are as those of two GPUs.
  check="ResNet-18, GPUs: 2"
  loss_run "$check" "ResNet-18, 2 workers" 10 "${resnet[@]}" train.math=exact train.kvstore.workers=2 --device gpu &&
    loss_run "$check" "$check" 10 "${resnet[@]}" train.math=exact --device "$(gpus_to 2)" &&
    compare_losses "$check" 10 "ResNet-18, 2 workers" "$check" 1e-3
  repeats "GPUs: $gpus, same bits" "$all" "${lenet[@]}" "$batch"

  scale 1
  for n in $(printf '%s\n' 2 "$gpus" | sort -un); do
    scale "$n"
    record_scaling "$n" "ResNet-50, GPUs: $n"
  done
  scale "$gpus" "$wire"
  record_wire "ResNet-50, GPUs: $gpus" "$wire"
}

# record_wire KEY SETTING: beside float32.
record_wire() {
  local key="ours $1, $2"
  if [[ -n ${rates[$key]:-} ]]; then
    record ok "${seconds[$key]}" "wire in bfloat16" "$(median "${rates[$key]}") images/s; in float32 $(median "${rates["ours $1"]:-nan}")"
  else
    record FAIL "${seconds[$key]:-0}" "wire in bfloat16" "${refusals[$key]:-no result}"
  fi
}

# watched FILE COMMAND...: runs the command, and appends five times a second the MiB that it takes on the host and that the first GPU has lent.
# shellcheck disable=SC2317  # a process of its own calls it
watched() {
  local file=$1 pid gpu
  shift
  "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    gpu=$(nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null) || gpu=0
    awk -v gpu="$gpu" '/^VmRSS:/ { print $2 / 1024, gpu }' "/proc/$pid/status" >>"$file" 2>/dev/null
    sleep 0.2
  done
  wait "$pid"
}

# Of the samples: the largest values in the second and in the last quarter.
flat() {
  awk '{ host[NR] = $1; gpu[NR] = $2 }
       function most(of, from, to,   i, m) { for (i = from; i <= to; ++i) if (of[i] > m) m = of[i]; return m }
       END {
         if (NR < 8) { printf "only %d samples of memory", NR; exit 1 }
         q = int(NR / 4)
         h0 = most(host, q, 2 * q); h1 = most(host, 3 * q, NR); g0 = most(gpu, q, 2 * q); g1 = most(gpu, 3 * q, NR)
         printf "memory of the host %.0f, later %.0f MiB, of the GPU %s", h0, h1, (g1 > 0 ? sprintf("%d, later %d MiB", g0, g1) : "not seen")
         exit !(h1 <= 1.02 * h0 + 16 && g1 <= 1.02 * g0 + 16)
       }' "$1"
}

# A run of LeNet that takes about half of soak_seconds: memory stays flat, and killed three times and resumed it gives the same bytes.
soak() {
  local check=soak device batch=$((64 * gpus)) rate steps after whole kills=0 begin=$SECONDS seen resume=() run_of
  device=$(gpus_to "$gpus")
  run_of=("$program" train "${lenet[@]}" data.batch_size="$batch" train.epochs=1000000 --device "$device" --deterministic --progress none)
  must $check "soak, speed" 60 "${run_of[@]}" train.max_steps=300 --out "$work/speed" || return
  rate=$(grep -o '[0-9.]* images/s in training' "$log" | head -n 1)
  steps=$(awk -v rate="${rate%% *}" -v batch="$batch" -v time="$soak_seconds" 'BEGIN {
    steps = int(rate / batch * time / 3); print (steps < 100 ? 100 : (steps > 200000 ? 200000 : steps)) }')
  run_of+=(train.max_steps="$steps" train.save.every=$((steps / 20))steps)
  export -f watched
  must $check "soak, undisturbed" $((3 * soak_seconds)) bash -c 'watched "$@"' watched "$logs/soak.memory" "${run_of[@]}" --out "$work/peace" ||
    return
  whole=$took
  seen=$(flat "$logs/soak.memory") || { record FAIL $((SECONDS - begin)) $check "$steps steps; $seen"; return; }
  while ((kills < 3)); do
    after=$(awk -v whole="$whole" -v seed="$RANDOM" 'BEGIN { srand(seed); printf "%.1f", whole * (0.15 + 0.25 * rand()) }')
    run "soak, killed $kills" $((3 * soak_seconds)) timeout --foreground -s KILL "$after" "${run_of[@]}" --out "$work/fire" "${resume[@]}"
    [[ $code -eq 137 ]] || break
    kills=$((kills + 1))
    if [[ -e $work/fire/config.yaml ]]; then resume=(--resume); else rm -rf "$work/fire"; fi
  done
  if ((kills == 3)); then
    must $check "soak, resumed" $((3 * soak_seconds)) "${run_of[@]}" --out "$work/fire" "${resume[@]}" || return
  elif ((code != 0 || kills == 0)); then
    record FAIL $((SECONDS - begin)) $check "$steps steps, killed $kills times: $(why)"
    return
  fi
  if cmp "$work/peace/checkpoints/last" "$work/fire/checkpoints/last" >"$log" 2>&1; then
    record ok $((SECONDS - begin)) $check "$steps steps on $device, killed $kills times: the same bytes; $seen"
  else
    record FAIL $((SECONDS - begin)) $check "$steps steps, killed $kills times: $(tail -n 1 "$log")"
  fi
}

second() {
  find_gpu || return
  gpus=$(grep -c '^gpu:' "$log")
  made_images || return
  if ((gpus > 1)); then
    between_gpus
  else
    record skip 0 "several GPUs" "there is one: NCCL, copies between GPUs, losses, scaling and the wire of several are not checked"
  fi
  soak
  tar -czf gpu_check_second.tar.gz -C "$logs" . && echo "logs: $PWD/gpu_check_second.tar.gz"
}

# ----

child=""
trap summary EXIT
trap 'kill "$child"; exit 143' TERM
for part in "${parts[@]}"; do
  deadline=$((SECONDS + part_seconds))
  echo "== $part"
  case $part in
    agree) agree ;;
    bench) bench ;;
    sanitize) sanitize ;;
    first) first ;;
    second) second ;;
  esac
done
exit $((failed > 0))
