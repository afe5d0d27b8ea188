#!/usr/bin/env bash
# Installs the toolchains that make components of Python and JavaScript into a cache outside the checkout, keyed by their
# versions, and prints the folder: bin/componentize-py and bin/componentize-qjs. Ten seconds; no time when they are there.
# Also adds Rust's targets wasm32-wasip1 and wasm32-wasip2. Needs python3 with venv, node 18 or later with npm, rustup.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${KEELSON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/keelson}
key=$(cd "$here" && cat build.sh requirements.txt package.json package-lock.json | sha256sum | cut -c1-16)-$(uname -m)
tools=$cache/toolchains/$key
say() { printf 'toolchains: %s\n' "$*" >&2; }

missing=0
need() { missing=1; say "MISSING $1"; say "  fix: $2"; }
python3 -c 'import venv, ensurepip' 2>/dev/null || need "python3 with venv" "apt-get install python3-venv, or the like"
command -v npm >/dev/null || need "node and npm" "apt-get install nodejs npm, or the like"
command -v rustup >/dev/null || need rustup "https://rustup.rs"
[ $missing = 0 ] || exit 1

(cd "$here" && rustup target add wasm32-wasip1 wasm32-wasip2) >&2
if [ ! -x "$tools/bin/componentize-py" ] || [ ! -x "$tools/bin/componentize-qjs" ]; then
  say "installing into $tools"
  # A venv knows its own path: it is made where it stays, and bin/ comes last.
  mkdir -p "$tools"
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet --only-binary :all: --require-hashes -r "$here/requirements.txt" >&2
  cp "$here/package.json" "$here/package-lock.json" "$tools/"
  npm ci --prefix "$tools" --silent --no-audit --no-fund --ignore-scripts >&2
  mkdir -p "$tools/bin"
  ln -sf ../python/bin/componentize-py "$tools/bin/componentize-py"
  ln -sf ../node_modules/.bin/componentize-qjs "$tools/bin/componentize-qjs"
fi
echo "$tools"
