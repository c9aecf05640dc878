# SPDX-License-Identifier: Apache-2.0
# mxtrain for the CPU. From the top of the tree:
#   docker build -f scripts/docker/cpu.Dockerfile -t mxtrain .
#   docker run --rm -v "$PWD:/work" mxtrain train photos.yaml
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN scripts/install_deps.sh && scripts/package.sh /out && mkdir /opt/mxtrain \
    && tar -xzf /out/mxtrain-*.tar.gz -C /opt/mxtrain --strip-components=1

FROM debian:12-slim
COPY --from=build /opt/mxtrain /opt/mxtrain
ENV PATH=/opt/mxtrain/bin:$PATH
WORKDIR /work
ENTRYPOINT ["mxtrain"]
