# Host and plugins, nothing else: no base image, no shell, no libc.
# The build context is what `make dist` made:  docker build -f Dockerfile target/dist
FROM scratch
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="keelson" \
      org.opencontainers.image.description="A host for Kubernetes operators written as sandboxed WebAssembly components" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/keelson/keelson" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY keelson /keelson
COPY plugins /plugins
COPY LICENSE /LICENSE
USER 65532:65532
ENTRYPOINT ["/keelson"]
CMD ["run", "--plugins", "/plugins"]
