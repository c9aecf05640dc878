#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/gpu_check.sh where there is no GPU: once the CPU plays one, so that every command that it gives is a command of this program; then
# programs that fail, hang and refuse in turn, which its table must report.
. "${MXTRAIN_SOURCE_DIR:?}/tests/cli/common.sh"

# An unpacked tarball, whose programs are those below.
mkdir -p package/bin package/share/mxtrain package/libexec/mxtrain tools
ln -s "$source_dir/configs" package/share/mxtrain/configs
cp "$source_dir/scripts/gpu_check.sh" "$source_dir/tests/bench/rival_torch.py" package/libexec/mxtrain/

# make FILE: a program, from the standard input.
make() {
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
# tests_say NAME TEXT [CODE]: a program of doctests ends so.
tests_say() {
  printf '%s\n' "$2" >"$1.txt"
  make "package/libexec/mxtrain/$1" <<<"cat '$work/$1.txt'; exit ${3:-0}"
}
# gpu_check CODE ARGUMENT...: runs the check, which may look for tools in tools/ and in the system's folders.
gpu_check() {
  local wanted=$1
  shift
  checks=$((checks + 1))
  last="gpu_check.sh $*"
  rm -rf logs
  PATH=$work/tools:/usr/bin:/bin GPU_CHECK_LOGS=$work/logs package/libexec/mxtrain/gpu_check.sh "$@" >stdout 2>stderr
  local code=$?
  [ $code -eq "$wanted" ] || fail "$last: exit code $code, expected $wanted"
}
# tells PATTERN: a line of the table.
tells() {
  checks=$((checks + 1))
  sed -n '/^== gpu_check.sh/,$p' stdout | grep -qE -- "$1" || fail "$last: the table lacks: $1"
}

# The CPU plays the GPU.
make package/bin/mxtrain <<END
if [[ \$1 == devices ]]; then
  echo "gpu:0   NVIDIA H1, 1.0 GiB (1.0 GiB free), compute capability 9.0"
  echo "cuda    driver 13.0"
  exit
fi
if [[ "\$*" == *amp=* ]]; then  # which the CPU may not know
  echo "epoch 8/8  train: loss 0.410  0:01     10/s  loss scale 1024, 2 steps skipped"
  echo "best: epoch 7 by accuracy = 0.7700"
  exit
fi
exec "$program" "\${@/#gpu/cpu}" --threads 2
END
passed='[doctest] test cases:  12 |  12 passed | 0 failed | 0 skipped'
tests_say test_gpu "$passed"
tests_say test_gpu_operators "$passed"
gpu_check 0 agree
tells '^ok +[0-9]+  devices +NVIDIA H1, .*; driver 13.0$'
tells '^ok +[0-9]+  operators +12 cases$'
tells '^ok +[0-9]+  LeNet, 50 steps +50 of 50 steps, from 2\.[0-9]+ to [12]\.[0-9]+ .*at most 0.0e\+00 apart'
tells '^ok +[0-9]+  ResNet-18, 10 steps +10 of 10 steps'
tells '^ok +[0-9]+  resume +bit-identical after 60 steps'
tells '^ok +[0-9]+  two runs, same bits +100 steps of LeNet'
tells '^ok +[0-9]+  LeNet in fp16 +best: epoch 7 by accuracy = 0.7700  loss scale 1024, 2 steps skipped$'
tells '^ok +[0-9]+  LeNet in bf16 +best: epoch 7'
tells '^skip +[0-9]+  MNIST +no folder of MNIST was given'
GPU_CHECK_SOAK=12 gpu_check 0 second
tells '^skip +[0-9]+  several GPUs +there is one'
tells '^ok +[0-9]+  soak +[0-9]+ steps on gpu:0, killed [123] times: the same bytes; memory of the host [0-9]+, later'

# A program that does everything but well. It trains to losses that follow from the step, and errs on the GPU at the step in the file wrong_step.
make package/bin/mxtrain <<'END'
here=$(dirname "$0")
case $1 in
  devices) cat "$here/devices"; exit ;;
  synth) exit ;;
  verify-resume) echo "error: resumed_weight: 3 elements differ, by at most 1e-06"; exit 9 ;;
  bench)
    [[ "$*" != *amp=fp16* ]] || { echo "net.yaml:3:4: error: fp16 is refused here"; exit 3; }
    echo '{"batch":64,"images_per_second":150.0,"storage_peak_bytes":104857600,"share_of_matrix_product":0.5,"matrix_product_flops":6e13,' \
      '"share_of_copy":0.25,"copy_bytes_per_second":4e12,"real_images_per_second":null,"host_seconds_per_step":'"$(cat "$here/host_seconds")," \
      "\"replays_per_step\":$(cat "$here/replays")}"
    exit ;;
esac
while [[ $# -gt 0 ]]; do
  case $1 in
    --out) out=$2 ;;
    --device) device=$2 ;;
    train.max_steps=*) steps=${1#*=} ;;
  esac
  shift
done
mkdir -p "$out/checkpoints"
date +%N >"$out/checkpoints/last"
wrong=$(cat "$here/wrong_step")
awk -v steps="$steps" -v wrong="$([[ $device == gpu ]] && echo "$wrong")" 'BEGIN {
  for (s = 1; s <= steps; ++s) {
    if (s == 31) sum = 0  # an epoch has 30 steps
    sum += 2 / s * (s == wrong ? 1.01 : 1)
    second = (s > 30)
    printf "{\"epoch\":%d,\"event\":\"step\",\"loss\":%.17g,\"lr\":0.1,\"step\":%d,\"time\":1.5}\n", second, sum / (second ? s - 30 : s), s
  } }' >"$out/events.jsonl"
END
echo "gpu:0   NVIDIA H1" >package/bin/devices
echo 7 >package/bin/wrong_step
echo 5e-05 >package/bin/host_seconds
echo 1 >package/bin/replays
tests_say test_gpu_operators 'TEST CASE:  a case that speaks
  a.cc:1: MESSAGE: all is well
TEST CASE:  softmax, a large axis
  b.cc:2: ERROR: CHECK( false ) is NOT correct!
TEST CASE:  softmax, a large axis
  b.cc:3: ERROR: CHECK( false ) is NOT correct!
TEST CASE:  pooling
  c.cc:4: FATAL ERROR: test case CRASHED: SIGSEGV
[doctest] test cases: 151 | 149 passed | 2 failed | 0 skipped' 1
gpu_check 1 agree
tells '^FAIL +[0-9]+  operators +151 cases, 2 failed \(softmax, a large axis;pooling\)'
tells '^FAIL +[0-9]+  LeNet, 50 steps +50 of 50 steps, from 2.0000 to 0.0400 .*at most 1.0e-02 apart, at step 7; 8e-3 is allowed'
tells '^ok +[0-9]+  tests of the GPU +12 cases'
tells '^FAIL +[0-9]+  resume +exit code 9: error: resumed_weight'
tells '^FAIL +[0-9]+  two runs, same bits .*differ'
echo 31 >package/bin/wrong_step  # the first of the second epoch
gpu_check 1 agree
tells '^FAIL +[0-9]+  LeNet, 50 steps .*apart, at step 31'
tells '^ok +[0-9]+  ResNet-18, 10 steps +10 of 10 steps'

# A hanging step is stopped, steps after the time limit are not run, and neither passes.
make package/libexec/mxtrain/test_gpu <<<'sleep 60'
GPU_CHECK_SECONDS=2 gpu_check 1 agree
tells '^FAIL +2  tests of the GPU .*exit code 124: stopped after [12] s'
tells '^FAIL +0  operators .*no time was left for it'
# Tests that were skipped or ran no case do not pass.
tests_say test_gpu 'skipped: no device' 77
gpu_check 1 agree
tells '^FAIL .* tests of the GPU .*exit code 77: skipped: no device'
tests_say test_gpu '[doctest] test cases:  0 |  0 passed | 0 failed | 0 skipped'
gpu_check 1 agree
tells '^FAIL .* tests of the GPU +0 cases'

# Beside PyTorch, which is a shell script here.
make tools/python3 <<'END'
case "$*" in
  *rival_torch.py*lenet*) echo '{"images_per_second": 50.5, "peak_memory_bytes": 209715200}' ;;
  *rival_torch.py*fp16*) echo '{"images_per_second": 300, "peak_memory_bytes": 209715200}' ;;
  *rival_torch.py*tf32\ off*) echo "torch.OutOfMemoryError: CUDA out of memory" >&2; exit 1 ;;
  *rival_torch.py*) echo '{"images_per_second": 100, "peak_memory_bytes": 104857600}' ;;
  *) echo 2.11.0 ;;
esac
END
GPU_CHECK_ROUNDS=1 gpu_check 1 bench
tells '^ok +[0-9]+  torch +2.11.0'
tells '^FAIL +[0-9]+  ResNet-50 bf16 +batch 256: 150.0 images/s, 100 MiB; arithmetic 50 % of 60.0 TFLOP/s, traffic 25 % of 4000 GB/s, host 50 us a step, 0.0 % of it \(wanted 10\), 1.00 graphs a step \(wanted 1\); torch 100'
tells '^FAIL +[0-9]+  ResNet-50 bf16 .*; torch 100.0 images/s, 100 MiB: speed 1.50 of it \(wanted 1.0\), memory 1.00 \(wanted 0.8\)$'
tells '^FAIL +[0-9]+  LeNet float32 .*speed 2.97 of it \(wanted 3.0\), memory 0.50'
tells '^FAIL +[0-9]+  ResNet-50 fp16 +batch 256: exit code 3: net.yaml:3:4: error: fp16 is refused here; torch: 300 images/s'
tells '^skip +[0-9]+  ResNet-50 exact .*no torch to compare with: exit code 1: torch.OutOfMemoryError'
sed -i 's/209715200}.* ;;$/209715200}'\'' ;;/; s/50\.5/49.5/' tools/python3
GPU_CHECK_ROUNDS=1 gpu_check 1 bench
tells '^ok +[0-9]+  LeNet float32 .*speed 3.03 of it'
make tools/python3 <<<'echo "ModuleNotFoundError: no torch" >&2; exit 1'
GPU_CHECK_ROUNDS=1 gpu_check 1 bench
tells '^skip +[0-9]+  torch +python3 has none that sees this GPU: ModuleNotFoundError'
tells '^skip +[0-9]+  LeNet float32 .*150.0 images/s.*no torch to compare with$'
echo 0.05 >package/bin/host_seconds
GPU_CHECK_ROUNDS=1 gpu_check 1 bench
tells '^FAIL +[0-9]+  LeNet float32 .*host 50000 us a step, 11.7 % of it \(wanted 10\), 1.00 graphs a step \(wanted 1\); no torch to compare with$'
echo 5e-05 >package/bin/host_seconds
echo 0.50 >package/bin/replays
GPU_CHECK_ROUNDS=1 gpu_check 1 bench
tells '^FAIL +[0-9]+  LeNet float32 .*, 0.50 graphs a step \(wanted 1\); no torch to compare with$'

# Under compute-sanitizer.
make package/libexec/mxtrain/test_gpu_operators <<<'[[ $1 != --count ]] || echo "[doctest] unskipped test cases passing the current filters: 25"'
make tools/compute-sanitizer <<<'echo "========= ERROR SUMMARY: 0 errors"'
gpu_check 0 sanitize
tells '^ok +[0-9]+  memcheck +nothing found in 25 of 25 cases'
tells '^ok +[0-9]+  racecheck +nothing found in 25 of 25 cases'
make tools/compute-sanitizer <<'END'
[[ "$*" != *memcheck*--first=11\ --last=20* ]] || { echo "========= Invalid __global__ write of size 4 bytes"; exit 99; }
[[ "$*" != *racecheck* ]] || sleep 60
END
GPU_CHECK_SECONDS=8 gpu_check 1 sanitize
tells '^FAIL +[0-9]+  memcheck +something in 1 steps of 10, in 2[05] of 25 cases of operators: .*Invalid __global__ write of size 4 bytes, in memcheck-11.log'
tells '^FAIL +[0-9]+  racecheck +not one step of 10 cases ended: stopped after [0-9] s'
make tools/compute-sanitizer <<<'echo "========= Error: Device not supported. Please refer to the documentation"; exit 1'
gpu_check 0 sanitize
tells '^skip +[0-9]+  memcheck .*Device not supported'
rm tools/compute-sanitizer
gpu_check 0 sanitize
tells '^skip +[0-9]+  sanitize +there is no compute-sanitizer'

# The most important of everything.
make package/libexec/mxtrain/test_gpu_operators <<<'echo "[doctest] test cases:  12 |  12 passed | 0 failed | 0 skipped"'
make tools/python3 <<'END'
case "$*" in
  *rival_torch.py*compile*) echo '{"images_per_second": 200, "peak_memory_bytes": 209715200}' ;;
  *rival_torch.py*) echo '{"images_per_second": 100, "peak_memory_bytes": 209715200}' ;;
  *) echo 2.11.0 ;;
esac
END
echo 1 >package/bin/replays
gpu_check 1 first
tells '^ok +[0-9]+  operators +12 cases$'
tells '^FAIL +[0-9]+  ResNet-50 bf16, channels_last\+compile .*speed 0.75 of it'
tells '^ok +[0-9]+  ResNet-50 bf16, channels_last .*speed 1.50 of it'
tells '^ok +[0-9]+  ResNet-50 bf16, eager .*speed 1.50 of it'
tells '^skip +[0-9]+  memcheck'
tells '^ok +[0-9]+  ResNet-18, 10 steps'
tar -tzf gpu_check_first.tar.gz >listed
holds "the tar has the logs" grep -q 'operators.log' listed

# Several GPUs, and a soak. The program's losses on several can go wrong, it scales as it is told, and a run can grow or forget.
printf 'TEST CASE:  arrays of all GPUs\n  a.cc:1: MESSAGE: GPUs: 4\n[doctest] test cases:  2 |  2 passed | 0 failed | 9 skipped\n' >nccl
make package/libexec/mxtrain/test_gpu <<<"cat '$work/nccl'"
make package/bin/mxtrain <<'END'
here=$(dirname "$0") asked="$* "
case $1 in
  devices) for id in 0 1 2 3; do echo "gpu:$id   NVIDIA H1"; done; exit ;;
  synth) exit ;;
  bench)
    case $asked in
      *wire=bfloat16*) rate=390 ;;
      *"gpu:0 "*) rate=100 ;;
      *"gpu:0,1 "*) rate=190 ;;
      *) rate=$(cat "$here/rate") ;;
    esac
    echo "{\"images_per_second\":$rate.0,\"replays_per_step\":24.0}"
    exit ;;
esac
while [[ $# -gt 0 ]]; do
  case $1 in
    --out) out=$2 ;;
    --device) device=$2 ;;
    train.max_steps=*) steps=${1#*=} ;;
  esac
  shift
done
mkdir -p "$out/checkpoints"
touch "$out/config.yaml"
if [[ $asked == *train.save.every=* ]]; then
  for ((step = $(cat "$out/step" 2>/dev/null || echo 0); step < 60; ++step)); do
    echo $step >"$out/step"
    [[ ! -e $here/grows ]] || data+=$(head -c 3000000 /dev/zero | tr '\0' x)
    sleep 0.1
  done
  [[ ! -e $here/forgets || $asked != *--resume* ]] || end=other
fi
echo "${end:-same}" >"$out/checkpoints/last"
echo "1000 images/s in training"
awk -v steps="$steps" -v wrong="$([[ $device == *,* ]] && cat "$here/wrong_step")" 'BEGIN {
  for (s = 1; s <= steps; ++s) {
    sum += 2 / s * (s == wrong ? 1.01 : 1)
    printf "{\"epoch\":0,\"event\":\"step\",\"loss\":%.17g,\"step\":%d}\n", sum / s, s
  } }' >"$out/events.jsonl"
END
echo 0 >package/bin/wrong_step
echo 380 >package/bin/rate
GPU_CHECK_SOAK=60 gpu_check 0 second
tells '^ok +[0-9]+  NCCL and copies +2 cases$'
tells '^ok +[0-9]+  LeNet, GPUs: 4 +50 of 50 steps, from 2.0000 to 0.0400 and 0.0400; at most 0.0e\+00 apart'
tells '^ok +[0-9]+  LeNet, train.kvstore.wire=bfloat16 +50 of 50 steps'
tells '^ok +[0-9]+  ResNet-18, GPUs: 2 +10 of 10 steps'
tells '^ok +[0-9]+  GPUs: 4, same bits +100 steps of LeNet'
tells '^ok +[0-9]+  ResNet-50, GPUs: 2 +190.0 images/s, 0.950 of 2 times one GPU \(wanted 0.9\), 24.00 graphs a step$'
tells '^ok +[0-9]+  ResNet-50, GPUs: 4 +380.0 images/s, 0.950 of 4 times'
tells '^ok +[0-9]+  wire in bfloat16 +390.0 images/s; in float32 380.0$'
tells '^ok +[0-9]+  soak +100 steps on gpu:0,1,2,3, killed [123] times: the same bytes; memory of the host [0-9]+, later [0-9]+ MiB, of the GPU not seen$'
tar -tzf gpu_check_second.tar.gz >listed
holds "the tar has the samples of the memory" grep -q 'soak.memory' listed
sed -i 's/GPUs: 4/NCCL was not found/' nccl
echo 9 >package/bin/wrong_step
echo 300 >package/bin/rate
touch package/bin/forgets
GPU_CHECK_SOAK=60 gpu_check 1 second
tells '^FAIL +[0-9]+  NCCL .*NCCL was not found'
tells '^FAIL +[0-9]+  LeNet, GPUs: 4 .*at most 1.0e-02 apart, at step 9; 1e-3 is allowed'
tells '^ok +[0-9]+  LeNet, train.kvstore.wire=bfloat16 .*at most 1.0e-02 apart'
tells '^FAIL +[0-9]+  ResNet-50, GPUs: 4 +300.0 images/s, 0.750 of 4 times'
tells '^FAIL +[0-9]+  soak .*differ'
touch package/bin/grows
GPU_CHECK_SOAK=60 gpu_check 1 second
tells '^FAIL +[0-9]+  soak +100 steps; memory of the host [0-9]+, later [1-9][0-9][0-9] MiB'

# Without a GPU.
make package/bin/mxtrain <<<'echo "gpu     none: libcudnn.so.9 was not found; install it"'
gpu_check 1 all
tells '^FAIL +[0-9]+  devices +gpu     none: libcudnn.so.9 was not found; install it; nothing else can be checked without one'
holds "the three parts are in one table" [ "$(sed -n '/^== gpu_check.sh/,$p' stdout | grep -c '^FAIL')" -eq 3 ]
gpu_check 2 bench more
says "gpu_check.sh agree [MNIST_FOLDER]"
gpu_check 2 agree nowhere
says "nowhere does not contain train-images-idx3-ubyte.gz"
finish
