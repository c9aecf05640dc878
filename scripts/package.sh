#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a tarball that runs on any x86-64 Linux with the same or a newer glibc (Debian 12 builds: 2.36) and needs no other packages:
# the program, its libraries, the configurations, the documentation, the licences.
#   scripts/package.sh [DIR]           writes DIR/mxtrain-VERSION-linux-x86_64.tar.gz; default: build/package
#   --cuda             with the CUDA backend, for compute capabilities 7.5 to 9.0 and later ones: ...-cudaMAJOR.tar.gz. Uses the driver,
#                      CUDA libraries and cuDNN of the target machine. Without them it computes on the CPU.
#                      libexec/mxtrain/gpu_check.sh verifies it there.
#   --cuda --arch 90   the same for one of 75, 80, 86, 89 and 90: ...-cudaMAJOR-sm90.tar.gz, 56 MiB at most
#   --check            also runs `synth`, `train` and `infer` from it in a chroot that contains only glibc (as root)
# Unpack it anywhere and run bin/mxtrain; the folder may be moved.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "package.sh: $*" >&2; exit 1; }
check=0 cuda=0 arch=all
while [[ ${1:-} == --* ]]; do
  case $1 in
    --check) check=1 ;;
    --cuda) cuda=1 ;;
    --arch) arch=${2:-none}; [[ $# -lt 2 ]] || shift ;;
    *) fail "unknown argument '$1'; it takes --cuda, --arch and --check" ;;
  esac
  shift
done
out=${1:-build/package}
[[ $arch =~ ^(75|80|86|89|90|all)$ ]] || fail "--arch is one of 75, 80, 86, 89, 90 and all"
[[ $cuda -eq 1 || $arch == all ]] || fail "--arch is for --cuda"

# Preset, build folder, settings and targets.
build=build/release configure=(--preset release) targets=(mxtrain_program)
if [[ $cuda -eq 1 ]]; then
  targets+=(mxtrain_cuda_lib test_gpu test_gpu_operators)
  case $arch in
    all) build=build/cuda configure=(--preset cuda) ;;
    90) build=build/cuda-dev configure=(--preset cuda-dev) ;;
    *) build=build/cuda-$arch configure=(--preset cuda-dev -B "$build" "-DCMAKE_CUDA_ARCHITECTURES=$arch-real") ;;
  esac
fi
scripts/install_deps.sh
mkdir -p build "$out"
cmake "${configure[@]}" >build/package.log 2>&1 || { cat build/package.log >&2; exit 1; }
rm -f build/package.log
cmake --build "$build" --target "${targets[@]}"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
tag=$(git tag --points-at HEAD 'v*' 2>/dev/null || true)
[[ -z $tag || $tag == "v$version" ]] || fail "this commit has the tag $tag, but CMakeLists.txt says version $version"
name=mxtrain-$version-linux-$(uname -m)
if [[ $cuda -eq 1 ]]; then
  name+=-cuda$(readelf -d "$build/lib/libmxtrain_cuda.so" | sed -n 's/.*\[libcublas\.so\.\([0-9]*\)\].*/\1/p')
  [[ $arch == all ]] || name+=-sm$arch
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/all" --strip >/dev/null

# The installed files that are needed at run time.
libdir=$(dirname "$(find "$work/all" -name libmxtrain.so | head -1)")
tree=$work/$name
lib=$tree/${libdir#"$work/all/"}
programs=("$tree/libexec/mxtrain/mxtrain")
mkdir -p "$tree/bin" "$tree/libexec/mxtrain" "$lib" "$tree/share" "$tree/licenses"
cp "$work/all/bin/mxtrain" "$tree/bin/"
cp "$work/all/libexec/mxtrain/mxtrain" "$tree/libexec/mxtrain/"
cp -a "$libdir"/libmxtrain*.so.* "$lib/"
# Those that speak to MPI, which stays the machine's own: without it they are never opened.
for mpi in openmpi mpich; do
  if [[ -e $libdir/libmxtrain_$mpi.so ]]; then cp "$libdir/libmxtrain_$mpi.so" "$lib/"; fi
done
cp -r "$work/all/share/"{mxtrain,man,bash-completion,zsh,fish} "$tree/share/"
cp LICENSE "$tree/licenses/mxtrain"
cp README.md "$tree/"
grep -oE '\]\([^)#]+' README.md | cut -c3- | grep -v "://" | sort -u | xargs -d '\n' cp -r --parents -t "$tree"  # what it links to, at the same places
cp -L /usr/share/doc/fonts-dejavu-core/copyright "$tree/licenses/fonts-dejavu-core"  # the letters of images, which the program holds
if [[ $cuda -eq 1 ]]; then
  cp "$libdir/libmxtrain_cuda.so" "$lib/"
  cmake --install "$build" --prefix "$tree" --component gpu_check --strip >/dev/null
  programs+=("$tree"/libexec/mxtrain/test_gpu*)
fi

# Libraries of the distribution, and the copyright files of their packages. glibc is the machine's own.
is_glibc() { [[ $1 =~ ^(ld-linux.*|libc|libm|libpthread|libdl|librt|libutil|libresolv)\.so ]]; }
needed() { ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u; }
needed "${programs[@]}" | while read -r soname path; do
  if is_glibc "$soname" || [[ -e $lib/$soname ]]; then continue; fi
  cp -L "$path" "$lib/$soname"
  package=$(dpkg -S "$(readlink -f "$path")" 2>/dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -e /usr/share/doc/$package/copyright ]]; then cp -L "/usr/share/doc/$package/copyright" "$tree/licenses/$package"; fi
done

# No library may come from elsewhere, except CUDA libraries of the CUDA backend.
needed "${programs[@]}" | while read -r soname path; do
  if is_glibc "$soname" || [[ $(readlink -f "$path") == "$tree"/* ]]; then continue; fi
  fail "$soname would be taken from $path, not from the package"
done
[[ $cuda -eq 0 ]] || readelf -d "$lib/libmxtrain_cuda.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r soname; do
  if is_glibc "$soname" || [[ -e $lib/$soname || $soname =~ ^lib(cublas|cublasLt|cudnn|nccl)\.so ]]; then continue; fi
  fail "libmxtrain_cuda.so needs $soname, which is neither in the package nor a library of CUDA"
done

tarball=$out/$name.tar.gz
tar -C "$work" --owner=0 --group=0 --sort=name -I "gzip -9" -cf "$tarball" "$name"
echo "$tarball: $(du -h "$tarball" | cut -f1), unpacked $(du -sh "$tree" | cut -f1)"
[[ $arch == all || $(stat -c %s "$tarball") -le $((56 << 20)) ]] || fail "$tarball is larger than 56 MiB"

if [[ $check -eq 1 ]]; then
  root=$work/root
  mkdir -p "$root/opt" "$root/tmp" "$root/dev"
  tar -C "$root/opt" -xzf "$tarball"
  find "$root/opt" -type f \( -name '*.so*' -o -path '*/bin/mxtrain' -o -path '*/libexec/mxtrain/mxtrain' \) -exec ldd {} + | grep -oE '/[^ ]+' | sort -u | while read -r path; do
    if is_glibc "$(basename "$path")"; then mkdir -p "$root$(dirname "$path")" && cp -L "$path" "$root$path"; fi
  done
  # inside PROGRAM ARGUMENT...: without /proc, in a folder that was moved. The loader finds the folder of a program that is not started by
  # bin/mxtrain from this variable.
  mv "$root/opt/$name" "$root/opt/moved"
  inside() {
    local program=/opt/moved/$1 origin=()
    [[ $1 == bin/mxtrain ]] || origin=(LD_ORIGIN_PATH="${program%/*}")
    shift
    env -i PATH="$PATH" HOME=/tmp "${origin[@]}" chroot "$root" "$program" "$@"
  }
  # refuses CODE TEXT PROGRAM ARGUMENT...: exits with this code and prints this text.
  refuses() {
    local wanted=$1 text=$2 code=0
    shift 2
    inside "$@" >"$work/said" 2>&1 || code=$?
    cat "$work/said"
    if [[ $code -ne $wanted ]] || ! grep -qF -- "$text" "$work/said"; then fail "$*: exit code $code; $wanted and '$text' were expected"; fi
  }
  config=/opt/moved/share/mxtrain/configs/quickstart.yaml
  data=(data.train.path=/data/quickstart/train data.val.path=/data/quickstart/val)
  inside bin/mxtrain --version
  inside bin/mxtrain nets squeezenet1_1
  inside bin/mxtrain synth /data/quickstart --count 240 --seed 1
  inside bin/mxtrain train "$config" "${data[@]}" train.epochs=2 --out /run1 --progress none
  inside bin/mxtrain infer /run1 /data/quickstart/val/star --top-k 2
  why="supports only the CPU"
  [[ $cuda -eq 0 ]] || why="was not found; install CUDA's libraries and cuDNN, or add their folders to MXTRAIN_CUDA_PATH"
  refuses 5 "$why" bin/mxtrain train "$config" "${data[@]}" --out /run2 --device gpu
  [[ $cuda -eq 0 ]] || refuses 77 "$why" libexec/mxtrain/test_gpu
  echo "it trains and infers with only glibc, and reports why there is no GPU"
fi
