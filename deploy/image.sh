#!/usr/bin/env bash
# Builds the image from DIST (made by deploy/dist.sh) with the engine that is there.
# usage: [IMAGE=localhost/keelson:VERSION] [ENGINE=docker|podman|buildah] deploy/image.sh [DIST]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:-${CARGO_TARGET_DIR:-target}/dist}
die() { echo "image: $*" >&2; exit 1; }

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
image=${IMAGE:-localhost/keelson:$version}
engine=${ENGINE:-}
if [ -z "$engine" ]; then # installed and able to run: a client without its daemon is not
  for e in docker podman buildah; do
    if command -v $e >/dev/null && $e info >/dev/null 2>&1; then engine=$e; break; fi
  done
fi
case $engine in
  docker | podman | buildah) ;;
  "") die "neither docker, podman nor buildah works here; install one, or name one in ENGINE" ;;
  *) die "ENGINE=$engine: it is docker, podman or buildah" ;;
esac
for f in keelson LICENSE plugins; do
  [ -e "$dist/$f" ] || die "$dist has no $f: run make dist first"
done

revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
$engine build --file Dockerfile --tag "$image" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" "$dist"
echo "built $image with $engine"
