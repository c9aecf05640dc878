# SPDX-License-Identifier: Apache-2.0
# mxtrain for NVIDIA GPUs. From the top of the tree:
#   docker build -f scripts/docker/cuda.Dockerfile -t mxtrain-cuda .
#   docker run --rm --gpus all -v "$PWD:/work" mxtrain-cuda train photos.yaml --device gpu
FROM nvidia/cuda:13.0.0-cudnn-devel-ubuntu24.04 AS build
COPY . /src
WORKDIR /src
RUN apt-get update && scripts/install_deps.sh && scripts/package.sh --cuda /out \
    && mkdir /opt/mxtrain && tar -xzf /out/mxtrain-*.tar.gz -C /opt/mxtrain --strip-components=1

FROM nvidia/cuda:13.0.0-cudnn-runtime-ubuntu24.04
COPY --from=build /opt/mxtrain /opt/mxtrain
ENV PATH=/opt/mxtrain/bin:$PATH
WORKDIR /work
ENTRYPOINT ["mxtrain"]
