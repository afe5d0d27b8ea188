#!/usr/bin/env bash
# The plugins as `cargo component build --release` makes them render what those of the project's own build render: the
# same text and the same exit code for every file in tests/fixtures. Installs cargo-component into the cache, 8 minutes.
# Reads KEELSON_BIN and KEELSON_PLUGINS (what make build has built).
set -euo pipefail
cd "$(dirname "$0")/.."
host=${KEELSON_BIN:-target/release/keelson}
plugins=${KEELSON_PLUGINS:-target/plugins}
builder=$(dirname "$host")/keelson-plugins-build

PATH=$(tests/toolchains/cargo-component.sh):$PATH
export PATH
other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
"$builder" --out "$other" --via cargo-component >&2

render() { # render FIXTURE FOLDER: what it prints, and how it ends
  local code=0
  "$host" render -f "$1" --plugins "$2" 2>&1 || code=$?
  echo "exit $code"
}
for fixture in tests/fixtures/*.yaml; do
  diff <(render "$fixture" "$plugins") <(render "$fixture" "$other") || { echo "$fixture: the two builds differ" >&2; exit 1; }
done
echo "cargo-component: $(ls tests/fixtures/*.yaml | wc -l) fixtures render the same from both builds" >&2
