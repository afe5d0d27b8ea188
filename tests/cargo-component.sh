#!/usr/bin/env bash
# The plugins as `cargo component build --release` makes them render what those of the project's own build render: the
# same text and the same exit code for every file in tests/fixtures. Installs cargo-component into the cache, 8 minutes.
# Reads KEELSON_BIN and KEELSON_PLUGINS (what make build has built).
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.21.1
tools=${KEELSON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson}/tools
host=${KEELSON_BIN:-target/release/keelson}
plugins=${KEELSON_PLUGINS:-target/plugins}
builder=$(dirname "$host")/keelson-plugins-build

if [ "$("$tools/bin/cargo-component" --version 2>/dev/null)" != "cargo-component $version" ]; then
  echo "cargo-component: installing $version into $tools" >&2
  cargo install cargo-component --version $version --locked --root "$tools" --target-dir "$tools/target" >&2
  rm -rf "$tools/target"
fi
export PATH=$tools/bin:$PATH
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
