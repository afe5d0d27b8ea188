#!/usr/bin/env bash
# Becomes /keelson in an image's root file system, as a restricted container would run it: as 65532 without groups or
# capabilities and no way to new ones, root file system read-only, process 1 of a PID namespace, nothing in the
# environment but what is given. Host network, since the API server listens on loopback.
#
# usage: unshare --mount --pid --fork container.sh ROOT [-m DIR:PATH[:ro]]… [-e NAME=VALUE]… -- ARG…
set -euo pipefail
root=$1; shift
variables=()
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
  case $1 in
    -m)
      IFS=: read -r dir path mode <<<"$2"
      mkdir -p "$root$path"
      mount --bind "$dir" "$root$path"
      [ "$mode" != ro ] || mount -o remount,bind,ro "$root$path" ;;
    -e) variables+=("$2") ;;
    *) echo "container.sh: $1?" >&2; exit 2 ;;
  esac
  shift 2
done
shift
mkdir -p "$root/proc"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]+"${variables[@]}"}" \
  setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid \
  chroot --userspec=65532:65532 "$root" /keelson "$@"
