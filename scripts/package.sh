#!/usr/bin/env bash
# Makes a tarball that runs on any x86-64 Linux with the same glibc or a newer one (Debian 12 builds: 2.36), with none of our packages:
# the program, the libraries that it needs beside it, the configurations, the licences.
#   scripts/package.sh [DIR]           writes DIR/mxtrain-VERSION-linux-x86_64.tar.gz; default: build/package
#   scripts/package.sh --check [DIR]   and runs `synth`, `train` and `infer` from it in a chroot that holds glibc alone (as root)
# Unpack it anywhere and run bin/mxtrain; the folder may be moved.
set -euo pipefail
cd "$(dirname "$0")/.."
check=0
[[ ${1:-} == --check ]] && check=1 && shift
out=${1:-build/package}

scripts/install_deps.sh
mkdir -p build "$out"
cmake --preset release >build/package.log 2>&1 || { cat build/package.log >&2; exit 1; }
rm -f build/package.log
cmake --build --preset release --target mxtrain_program
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/release/CMakeCache.txt)
name=mxtrain-$version-linux-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install build/release --prefix "$work/all" >/dev/null

# What runs, out of all that is installed.
libdir=$(dirname "$(find "$work/all" -name libmxtrain.so | head -1)")
tree=$work/$name
lib=$tree/${libdir#"$work/all/"}
mkdir -p "$tree/bin" "$lib" "$tree/share" "$tree/licenses"
cp "$work/all/bin/mxtrain" "$tree/bin/"
cp -a "$libdir"/libmxtrain*.so.* "$lib/"
cp -r "$work/all/share/"{mxtrain,man,bash-completion,zsh,fish} "$tree/share/"
cp LICENSE "$tree/licenses/mxtrain"
cp README.md "$tree/"
cp -L /usr/share/doc/fonts-dejavu-core/copyright "$tree/licenses/fonts-dejavu-core"  # the letters of pictures, which the program holds

# Libraries of the distribution, and the copyright files of the packages that they are from. glibc must be that of the machine.
is_glibc() { [[ $1 =~ ^(ld-linux.*|libc|libm|libpthread|libdl|librt|libutil|libresolv)\.so ]]; }
ldd "$tree/bin/mxtrain" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | while read -r soname path; do
  if is_glibc "$soname" || [[ -e $lib/$soname ]]; then continue; fi
  cp -L "$path" "$lib/$soname"
  package=$(dpkg -S "$(readlink -f "$path")" 2>/dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -e /usr/share/doc/$package/copyright ]]; then cp -L "/usr/share/doc/$package/copyright" "$tree/licenses/$package"; fi
done

# Nothing may be found elsewhere.
ldd "$tree/bin/mxtrain" | awk '$2 == "=>" {print $1, $3}' | while read -r soname path; do
  if is_glibc "$soname" || [[ $(readlink -f "$path") == "$tree"/* ]]; then continue; fi
  echo "package.sh: $soname would be taken from $path, not from the package" >&2
  exit 1
done

tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz: $(du -h "$out/$name.tar.gz" | cut -f1), unpacked $(du -sh "$tree" | cut -f1)"

if [[ $check -eq 1 ]]; then
  root=$work/root
  mkdir -p "$root/opt" "$root/tmp" "$root/dev"
  tar -C "$root/opt" -xzf "$out/$name.tar.gz"
  find "$root/opt" -type f \( -name '*.so*' -o -path '*/bin/mxtrain' \) -exec ldd {} + | grep -oE '/[^ ]+' | sort -u | while read -r path; do
    if is_glibc "$(basename "$path")"; then mkdir -p "$root$(dirname "$path")" && cp -L "$path" "$root$path"; fi
  done
  # The loader finds out where the program lies from /proc, or, where that is not mounted as here, from this variable.
  inside() { env -i PATH="$PATH" HOME=/tmp LD_ORIGIN_PATH="/opt/$name/bin" chroot "$root" "/opt/$name/bin/mxtrain" "$@"; }
  inside --version
  inside synth /data/quickstart --count 240 --seed 1
  inside train "/opt/$name/share/mxtrain/configs/quickstart.yaml" data.train.path=/data/quickstart/train data.val.path=/data/quickstart/val \
    train.epochs=2 --out /run1 --progress none
  inside infer /run1 /data/quickstart/val/star --top-k 2
  echo "it trains and infers with glibc alone"
fi
