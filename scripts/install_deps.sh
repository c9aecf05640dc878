#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build dependencies from the distribution's packages (Debian 12 and later, Ubuntu 24.04 and later). As root, or with sudo.
# Does nothing if everything is installed.
#   --development    also the tools of scripts/lint.sh and what some tests compare with; without these packages such tests are skipped
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache
  libcli11-dev libyaml-cpp-dev libfmt-dev libspdlog-dev doctest-dev nlohmann-json3-dev
  libdnnl-dev libhwy-dev libonnx-dev libprotobuf-dev
  libjpeg-dev libturbojpeg0-dev libpng-dev libgif-dev libwebp-dev libtiff-dev libarchive-dev libstb-dev
  libpugixml-dev libpcre2-dev libutf8proc-dev
  libopencv-core-dev libopencv-imgproc-dev
  zlib1g-dev libdeflate-dev libxxhash-dev fonts-dejavu-core
  libcurl4-openssl-dev libmd-dev
  libopenmpi-dev libmpich-dev
)

# Clang 19 compiles what AddressSanitizer watches: in half of GCC's time, and unlike Debian 12's default version all of C++20 that stands here.
development=(git openmpi-bin mpich clang-19 clang-tidy-19 libclang-rt-19-dev libomp-19-dev clang-format doxygen python3-yaml python3-jsonschema)

case ${1:-} in
  "") ;;
  --development) packages+=("${development[@]}") ;;
  *) echo "install_deps.sh: unknown argument '$1'; it takes --development" >&2; exit 2 ;;
esac
missing=()
for package in "${packages[@]}"; do
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "install_deps.sh: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
