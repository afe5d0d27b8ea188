#!/usr/bin/env bash
# The component and its Plugin document into a folder that a host serves. Wants componentize-py in PATH.
# usage: build.sh OUT
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
componentize-py --quiet -d ../../wit/operator-0.1.0 -w plugin componentize app -o "$out/staticsite.wasm.part"
digest=$(sha256sum "$out/staticsite.wasm.part" | cut -d' ' -f1)
mv "$out/staticsite.wasm.part" "$out/staticsite.wasm"
sed "s/sha256: \"\"/sha256: \"$digest\"/" plugin.yaml >"$out/staticsite.yaml"
