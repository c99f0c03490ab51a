#!/usr/bin/env bash
# A Docker engine for the tests: engine.sh start|stop|status|env
#
# `start` does nothing when an engine answers already. Otherwise it installs Debian's docker.io and iptables, and
# starts dockerd on the default Unix socket and, with TLS, on a loopback port. `stop` ends that one only, by its id.
# `env` prints the variables that point the tests at the TLS port.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

state=$(rig_dir)
pid_file=$state/dockerd.pid
log=$state/dockerd.log
certs=$state/tls
socket=unix:///var/run/docker.sock
tls_port=${YAOSB_RIG_TLS_PORT:-2376}

answers() { timeout 10 docker --host "$socket" version --format '{{.Server.Version}}'; }

# A process id alone may have come to mean another process: the start time goes with it.
identity() { [ -r "/proc/$1/stat" ] && echo "$1 $(cut -d ' ' -f 22 "/proc/$1/stat")"; }

ours() { # the id of the dockerd that this script started, if it still runs
    local pid rest
    read -r pid rest 2> /dev/null < "$pid_file" || return 1
    [ "$(identity "$pid")" = "$pid $rest" ] && echo "$pid"
}

gone() { ! kill -0 "$1" 2>/dev/null; }

make_certs() { # an authority, a server for loopback and a client, for a month
    [ -s "$certs/cert.pem" ] && openssl x509 -checkend 86400 -noout -in "$certs/cert.pem" > /dev/null && return 0
    rm -rf "$certs"
    mkdir -p "$certs"
    (
        cd "$certs"
        umask 077
        openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=yaosb test authority' \
            -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
            -keyout ca-key.pem -out ca.pem
        sign() { # NAME SUBJECT EXTENSIONS
            openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$1key.pem" -out "$1.csr"
            openssl x509 -req -days 30 -in "$1.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
                -extfile <(printf '%s\n' "$3") -out "$1cert.pem"
        }
        sign server- localhost $'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth'
        sign '' client 'extendedKeyUsage=clientAuth'
    ) > "$state/openssl.log" 2>&1 || die "certificates could not be made: see $state/openssl.log"
}

start() {
    if command -v docker > /dev/null && answers > /dev/null 2>&1; then
        say "an engine answers already (version $(answers))"
        return 0
    fi
    need_root "starting an engine"
    apt_install docker.io iptables openssl ca-certificates
    mkdir -p "$state"
    make_certs
    say "starting dockerd (log: $log)"
    setsid nohup dockerd --pidfile "$state/engine-own.pid" --host "$socket" \
        --host "tcp://127.0.0.1:$tls_port" --tlsverify --tlscacert "$certs/ca.pem" \
        --tlscert "$certs/server-cert.pem" --tlskey "$certs/server-key.pem" > "$log" 2>&1 < /dev/null 9>&- &
    local pid=$!
    answers_or_dead() { answers || gone "$pid"; }
    wait_for 90 answers_or_dead || { tail -n 20 "$log" >&2; kill "$pid"; die "the engine did not answer in 90 s"; }
    gone "$pid" && { tail -n 20 "$log" >&2; die "dockerd ended at once"; }
    identity "$pid" > "$pid_file"
    say "engine $(answers) is up (process $pid)"
}

stop() {
    local pid
    pid=$(ours) || { say "no engine of ours is running"; rm -f "$pid_file"; return 0; }
    say "ending dockerd (process $pid)"
    kill "$pid"
    wait_for 60 gone "$pid" || die "dockerd (process $pid) did not end in 60 s"
    rm -f "$pid_file"
}

status() {
    local version pid
    version=$(answers 2>/dev/null) || { echo "no engine answers at $socket"; return 3; }
    if pid=$(ours); then
        echo "engine $version, started here (process $pid), TLS on tcp://127.0.0.1:$tls_port"
    else
        echo "engine $version, not started here"
    fi
}

environment() {
    ours > /dev/null || return 0
    printf 'export SANDBOX_TEST_REMOTE_ADDR=%q\n' "tcp://127.0.0.1:$tls_port"
    printf 'export SANDBOX_TEST_REMOTE_CERTS=%q\n' "$certs"
}

case "${1:-}" in
    start) lock engine && start ;;
    stop) lock engine && stop ;;
    status) status ;;
    env) environment ;;
    *) die "usage: engine.sh start|stop|status|env" ;;
esac
