#!/usr/bin/env bash
# Holds the image and deploy/ against a real control plane, without a container engine that could run them:
#   image    holds the host, the plugins and LICENSE, nothing else; the host is static; it runs as 65532
#   default  the manifests apply without a warning and again without a change; the Pod that the cluster makes of the
#            Deployment, run from the image as a kubelet would, brings the examples to Ready within its memory limit
#   overlays/namespaced      a host has the same rights in its one namespace, none outside, and serves there
#   overlays/plugins-volume  the claim takes the init container's place
#
# usage: tests/image/run.sh [DIST]   as root, with buildah and musl-tools
#   DIST  made before by deploy/dist.sh; without it, it is made anew
set -euo pipefail
me=test-image
. "$(dirname "$0")/../control-plane/lib.sh"
cd "$here/../.."

[ "$(id -u)" = 0 ] || die "root is needed: a container's user, mounts and root file system are made"
for tool in buildah musl-gcc readelf unshare setpriv; do
  command -v $tool >/dev/null || die "$tool is missing: apt-get install buildah musl-tools binutils util-linux"
done
"$here/build.sh" >/dev/null
kubectl=$(program kubectl)
work=$(mktemp -d)
export CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/graph" "$work/run" >"$CONTAINERS_STORAGE_CONF"
container='' shell='' cgroup='' name=keelson-test-$$
end() {
  local rc=$?
  set +e
  # shellcheck disable=SC2046 # process 1 of the container: all of it goes. unshare's --kill-child ends at a change of user.
  [ -z "$shell" ] || kill -9 $(cat "/proc/$shell/task/$shell/children") 2>/dev/null
  if [ $rc != 0 ] && [ -f "$work/host.log" ]; then say "the host's last words:"; tail -30 "$work/host.log" >&2; fi
  "$here/cluster.sh" down "$work/cluster"
  [ -z "$container" ] || buildah rm "$container" >/dev/null
  rm -rf "$work"
  if [ -n "$cgroup" ]; then # its last process ends when it ends
    for _ in $(seq 50); do rmdir "$cgroup" 2>/dev/null && break; sleep 0.1; done
  fi
  [ $rc = 0 ] && say "passed in $SECONDS s" || say "FAILED after $SECONDS s"
  exit $rc
}
trap end EXIT
trap 'exit 130' INT TERM

# === Small words

equal() { # WHAT EXPECTED FOUND
  if [ "$2" = "$3" ]; then say "ok: $1"; else
    diff <(echo "$2") <(echo "$3") >&2 || true
    die "$1: not as expected (< expected, > found)"
  fi
}
within() { # SECONDS WHAT COMMAND…   waits until it succeeds
  local deadline=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { "$@" >&2 || true; die "$what: not in time"; }
    sleep 0.2
  done
  say "ok: $what"
}
k() { "$kubectl" "$@"; }
apply() { # FOLDER   a warning (PodSecurity, deprecated API) is a failure
  k apply -k "$1" >"$work/apply" 2>&1 || { cat "$work/apply" >&2; die "$1 is refused by the API server"; }
  ! grep -i warning "$work/apply" >&2 || die "$1 is applied with a warning"
}
rights() { k auth can-i --list -n "$1" --as="system:serviceaccount:$2" | LC_ALL=C sort; } # NAMESPACE, NAMESPACE:NAME
may() { k auth can-i --quiet "$@" --as=system:serviceaccount:keelson-system:keelson 2>/dev/null; }
get() { k -n "$namespace" get "$1" -o "jsonpath=$2"; }
answers() { # PATH   of the host's probes, with 200
  local line
  exec 3<>"/dev/tcp/${probes%:*}/${probes##*:}" || return 1
  printf 'GET %s HTTP/1.1\r\nHost: probes\r\nConnection: close\r\n\r\n' "$1" >&3
  read -r line <&3 || true
  exec 3>&-
  [[ $line == *" 200 "* ]] || { echo "GET $1: $line"; return 1; }
}
ready() { k -n "$1" wait --for=condition=Ready --timeout=60s --recursive=false -f deploy/examples >/dev/null; } # NAMESPACE

# === A Pod of the cluster, run from the image

pod() { # NAMESPACE   finds the Pod that the Deployment has made, and lays out what a kubelet would mount
  namespace=$1
  made() { mapfile -t pods < <(k -n "$namespace" get pods -l app.kubernetes.io/component=host -o name) && [ ${#pods[@]} = 2 ]; }
  within 30 "$namespace: two Pods are made of the Deployment and admitted" made
  made
  pod=${pods[0]}
  rm -rf "$work/token" "$work/plugins"
  mkdir -p "$work/token" "$work/plugins"
  k -n "$namespace" create token "$(get "$pod" '{.spec.serviceAccountName}')" >"$work/token/token"
  k -n "$namespace" get configmap kube-root-ca.crt -o 'jsonpath={.data.ca\.crt}' >"$work/token/ca.crt"
  printf %s "$namespace" >"$work/token/namespace"
  chmod -R a+rX "$work/token"
  chmod 777 "$work/plugins" # as an emptyDir is
}
container() { # initContainers|containers ARG…   becomes the first container of that list; ARGs are put after its own
  local list=$1 spec mode arguments variables
  shift
  spec=".spec.${list}[0]"
  mode=$(get "$pod" "{$spec.volumeMounts[?(@.name==\"plugins\")].readOnly}")
  mapfile -t arguments < <(get "$pod" "{range $spec.args[*]}{@}{\"\\n\"}{end}")
  mapfile -t variables < <(get "$pod" "{range $spec.env[*]}{.name}={.value}{.valueFrom.fieldRef.fieldPath}{\"\\n\"}{end}")
  set -- -- "${arguments[@]}" "$@"
  for v in "${variables[@]}"; do set -- -e "${v/%=metadata.namespace/=$namespace}" "$@"; done
  [ -z "$cgroup" ] || echo "$BASHPID" >"$cgroup/cgroup.procs"
  exec unshare --mount --pid --fork "$here/../image/container.sh" "$root" \
    -m "$work/token:/var/run/secrets/kubernetes.io/serviceaccount:ro" \
    -m "$work/plugins:/var/lib/keelson/plugins${mode:+:ro}" \
    -e KUBERNETES_SERVICE_HOST=127.0.0.1 -e "KUBERNETES_SERVICE_PORT=$port" "$@"
}
# The Pod's memory limit, for the host and the children that compile: a control group with it, where one can be made.
limit() {
  limit=$(get "$pod" '{.spec.containers[0].resources.limits.memory}')
  local base=/sys/fs/cgroup max=memory.max
  cgroup=$base/$name peak=memory.peak
  if [ -d $base/memory ]; then # version 1
    cgroup=$base/memory/$name max=memory.limit_in_bytes peak=memory.max_usage_in_bytes
  fi
  if ! mkdir "$cgroup" || [ ! -f "$cgroup/$max" ]; then
    rmdir "$cgroup"
    cgroup=''
    say "no control group for memory can be made here: the limit is not enforced"
    return
  fi 2>/dev/null
  echo $((${limit%Mi} * 1024 * 1024)) >"$cgroup/$max"
}
up() { # runs the host of the Pod, and finds its probes; the port is a free one, on loopback
  (container containers --probe-address 127.0.0.1:0) >"$work/host.log" 2>&1 &
  shell=$!
  found() {
    probes=$(sed -n '/"message":"probes listen"/s/.*"address":"\([0-9.:]*\)".*/\1/p' "$work/host.log") && [ -n "$probes" ]
  }
  within 30 "$namespace: the host starts" found
  found
  for child in $(cat "/proc/$shell/task/$shell/children"); do
    [ "$(cat "/proc/$child/comm")" != keelson ] || init=$child
  done
  for probe in livenessProbe readinessProbe; do
    path=$(get "$pod" "{.spec.containers[0].$probe.httpGet.path}")
    within 60 "$namespace: $path answers 200" answers "$path"
  done
}
down() { # SIGTERM, as the kubelet sends it; process 1 gets only what it has asked for
  local rc=0 began
  equal "$namespace: the host leads" 1 "$(k -n "$namespace" get lease keelson -o 'jsonpath={.spec.holderIdentity}' | wc -w)"
  began=$SECONDS
  kill -TERM "$init"
  wait "$shell" || rc=$?
  shell=''
  [ $((SECONDS - began)) -le 2 ] || die "the host took $((SECONDS - began)) s to end"
  equal "$namespace: SIGTERM ends the host with 0" 0 $rc
  equal "$namespace: and gives the Lease back" '' "$(k -n "$namespace" get lease keelson -o 'jsonpath={.spec.holderIdentity}')"
}

# === The image

dist=${1:-$work/dist}
[ $# -gt 0 ] || deploy/dist.sh "$dist"
ENGINE=buildah deploy/image.sh "$dist" >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; die "no image"; }
image=$(k kustomize deploy/default | sed -n 's/^ *image: //p' | sort -u)
container=$(buildah from --pull-never "$image") || die "deploy/ runs $image, deploy/image.sh builds another"
root=$(buildah mount "$container")
inspect() { buildah inspect --type image --format "{{.OCIv1.Config.$1}}" "$image"; }
equal "the image's user" 65532:65532 "$(inspect User)"
equal "the image's program" '[/keelson] [run --plugins /plugins]' "$(inspect Entrypoint) $(inspect Cmd)"
equal "the image's files" \
  "$(printf '%s\n' '0:0 644 /LICENSE' '0:0 755 /keelson' '0:0 755 /plugins' '0:0 644 /plugins/'{mongo,mysql}.{wasm,yaml} | sort -k3)" \
  "$(cd "$root" && find . -mindepth 1 -printf '%U:%G %m /%P\n' | sort -k3)"
equal "the host asks for no interpreter" '' "$(readelf -lW "$root/keelson" | grep INTERP || true)"

# === deploy/default

KUBECONFIG=$("$here/cluster.sh" up "$work/cluster" --while $$)
export KUBECONFIG
port=$(k config view --raw -o 'jsonpath={.clusters[0].cluster.server}'); port=${port##*:}
apply deploy/default
apply deploy/default
equal "deploy/default, applied again, changes nothing" '' "$(grep -v ' unchanged$' "$work/apply" || true)"
established databases.zalando.org k
within 30 "the aggregated role is filled" may create pods -n default
for right in 'list secrets' 'create deployments.apps' 'create pods --subresource=exec' 'patch clusterroles' \
  'impersonate users' '* *'; do
  set -f
  # shellcheck disable=SC2086 # verb and resource
  ! may $right -A || die "the host may $right"
  set +f
done
say "ok: the host may not do what it has no business with"

pod keelson-system
(container initContainers) >"$work/host.log" 2>&1 || die "the init container failed"
equal "the init container copies the plugins" "$(ls "$root/plugins")" "$(ls "$work/plugins")"
limit
up
k apply -f deploy/examples >/dev/null
within 60 "the examples become Ready" ready default
k get databases,pods,services
say "resident memory is $(($(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$init/status") / 1024)) MiB"
[ -z "$cgroup" ] ||
  say "ok: charged to the Pod, with its compilers, were $(($(cat "$cgroup/$peak") / 1024 / 1024)) MiB at most; the limit $limit held"
down

# === The overlays

k create namespace team-a >/dev/null
apply deploy/overlays/namespaced
lease() { grep '^leases' || true; }
beside_it() { grep -v '^leases' || true; }
inside() { grep -v '^namespaces' || true; } # a selector of namespaces is for a host of the whole cluster
equal "namespaced: in its namespace the rights of a host for all" \
  "$(rights team-a keelson-system:keelson | inside)" "$(rights team-a team-a:keelson | beside_it)"
equal "namespaced: its Lease is there too" \
  "$(rights keelson-system keelson-system:keelson | lease)" "$(rights team-a team-a:keelson | lease)"
equal "namespaced: elsewhere no more than anybody" "$(rights default team-a:nobody)" "$(rights default team-a:keelson)"
pod team-a
(container initContainers) >"$work/host.log" 2>&1 || die "the init container failed"
up
k -n team-a apply -f deploy/examples >/dev/null
within 60 "namespaced: the examples become Ready" ready team-a
down

apply deploy/overlays/plugins-volume
namespace=keelson-system
equal "plugins-volume: a claim takes the place of the init container" keelson-plugins \
  "$(get deployment/keelson '{.spec.template.spec.initContainers}{.spec.template.spec.volumes[*].persistentVolumeClaim.claimName}')"
