# Shared by the rig's scripts; source it, do not run it.

rig_dir() { # the rig's state on this machine, for all checkouts of one user: pid file, log, certificates
    echo "${YAOSB_RIG_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/yaosb-rig}"
}

cache_dir() { # what is dear to make
    echo "${YAOSB_RIG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/yaosb-rig}"
}

say() { echo "rig: $*" >&2; }
die() { say "$*"; exit 1; }

lock() { # one run of each script at a time; children that outlive it must close 9
    mkdir -p "$(rig_dir)"
    exec 9> "$(rig_dir)/$1.lock"
    flock 9
}

need_root() { [ "$(id -u)" = 0 ] || die "$1 needs root"; }

# apt_install PACKAGE...: installs what is missing, without starting any service.
apt_install() {
    local missing=() package policy=/usr/sbin/policy-rc.d
    for package in "$@"; do
        dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    need_root "installing ${missing[*]}"
    say "installing ${missing[*]}"
    (
        if [ ! -e "$policy" ]; then
            printf '#!/bin/sh\nexit 101\n' > "$policy"
            chmod 755 "$policy"
            trap 'rm -f "$policy"' EXIT
        fi
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"
    ) > "$(rig_dir)/apt.log" 2>&1 || { tail -n 20 "$(rig_dir)/apt.log" >&2; die "could not install ${missing[*]}"; }
}

# wait_for SECONDS COMMAND...: polls the command until it succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" > /dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -rt 0.1 <> <(:) || :
    done
}
