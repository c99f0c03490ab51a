#!/usr/bin/env bash
# The images the tests use, made from Debian's packages, so that no image registry is needed.
#
#   yaosb/test-base:1      Debian bookworm, minimal, with python3, procps and ca-certificates; also tagged
#                          debian:bookworm-slim where that is absent
#   yaosb/test-nopython:1  busybox and nothing else
#
# An image that is there is left alone. What was fetched is cached: a second engine gets them in seconds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

base=yaosb/test-base:1
nopython=yaosb/test-nopython:1
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cache=$(cache_dir)
work=

has() { docker image inspect "$1" > /dev/null 2>&1; }

clean() { [ -z "$work" ] || rm -rf --one-file-system "$work"; }
trap clean EXIT

make_base_tar() {
    need_root "debootstrap"
    apt_install debootstrap
    say "making the base with debootstrap (a minute or two)"
    work=$(mktemp -d /var/tmp/yaosb-rig.XXXXXX)
    debootstrap --variant=minbase --include=python3,procps,ca-certificates bookworm "$work/root" > "$work/log" 2>&1 ||
        { tail -n 20 "$work/log" >&2; die "debootstrap failed"; }
    tar --create --numeric-owner --directory "$work/root" \
        --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/log/*' \
        --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
        --file "$work/base.tar" .
    mkdir -p "$cache"
    mv "$work/base.tar" "$cache/base-1.tar.new"
    mv "$cache/base-1.tar.new" "$cache/base-1.tar"
    clean
}

make_base() {
    [ -s "$cache/base-1.tar" ] || make_base_tar
    docker import --change "ENV PATH=$path" --change 'CMD ["bash"]' "$cache/base-1.tar" "$base" > /dev/null
    say "made $base"
}

fetch_busybox() { # unpacked, not installed: the host's commands stay as they are
    (
        cd "$work"
        [ "$(id -u)" != 0 ] || chown _apt . 2> /dev/null || :
        apt-get download -qq busybox-static || { apt-get update -qq && apt-get download -qq busybox-static; }
    ) > "$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; die "Debian's busybox-static could not be fetched"; }
    dpkg-deb -x "$work"/busybox-static_*.deb "$work/deb"
    mkdir -p "$cache"
    mv "$work/deb/bin/busybox" "$cache/busybox"
}

make_nopython() {
    work=$(mktemp -d /var/tmp/yaosb-rig.XXXXXX)
    local root=$work/root applet
    mkdir -p "$root"/{bin,etc,root,tmp,proc,sys,dev}
    chmod 1777 "$root/tmp"
    [ -s "$cache/busybox" ] || fetch_busybox
    cp "$cache/busybox" "$root/bin/busybox"
    for applet in $("$root/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' > "$root/etc/passwd"
    echo 'root:x:0:' > "$root/etc/group"
    tar --create --numeric-owner --owner=0 --group=0 --directory "$root" . |
        docker import --change 'ENV PATH=/bin' --change 'CMD ["sh"]' - "$nopython" > /dev/null
    clean
    say "made $nopython"
}

lock image
docker version > /dev/null 2>&1 || die "no engine answers: run engine.sh start"
has "$nopython" || make_nopython
has "$base" || make_base
has debian:bookworm-slim || docker tag "$base" debian:bookworm-slim
say "images are there: $base $nopython"
