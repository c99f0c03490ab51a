"""The shell scripts we run inside containers: POSIX sh, little else than its builtins, no python, no ps.

They are told everything by arguments. Images that have no sh can run their own main process, but no commands.
"""

KEEPALIVE_NAME = "yaosb-keepalive"
WRAPPER_NAME = "yaosb-exec"
MARKER = "YAOSB_EXEC"
"""The environment variable by which a command's processes are found."""

KEEPALIVE = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait; done"
"""Ends at once on TERM; the engine's init above it reaps what commands leave behind."""

WITH_ENVIRONMENT = '. "$1"; shift; exec "$@"'

WRAPPER = r"""
# NONCE in|no COMMAND...: runs a command and reports its end on both outputs, each after the last byte of its own.
# First it says on stdout that it runs: what comes in place of that is the engine's own message.
# Then it waits until the host has hung up: the engine forgets what is not read two seconds after our end.
# "in": stdin comes as pieces, each after a line with its size; size 0 is the end. So no transport need half-close.
nonce=$1 mode=$2
shift 2
exec 9>&2 2>/dev/null
printf '%s>' "$nonce"
trap : HUP INT QUIT TERM
report() {
    printf '%s%s;' "$nonce" "$1"
    printf '%s%s;' "$nonce" "$1" >&9
}
missing() {
    case $1 in
        */*) { [ -e "$1" ] || [ -h "$1" ]; } && { [ ! -x "$1" ] || [ -d "$1" ]; } && echo 126 ;;
        *) command -v "$1" > /dev/null || echo 127 ;;
    esac
}
run() {
    trap : HUP INT QUIT TERM
    code=$(missing "$1")
    if [ -n "$code" ]; then
        report "!$code"
        return
    fi
    (
        trap 'report "!$?"' EXIT
        exec "$@" 2>&9 9>&-
    )
    report "$?"
}
feed() {
    trap : HUP INT QUIT TERM
    while read -r size && [ "$size" -gt 0 ]; do
        dd bs="$size" count=1 iflag=fullblock || break
    done
    exec > /dev/null
    dd bs=65536
}
if [ "$mode" = in ]; then
    feed | run "$@"
else
    run "$@" < /dev/null
    while read -r size; do :; done
fi
"""

END_PROCESSES = r"""
# tree MARKER NONCE SIGNAL GRACE | once MARKER NONCE SIGNAL | pids SIGNAL GRACE PID:START...
# Signals processes and what they have started; prints how many there were at first, the wrapper's own not counted.
# After GRACE (twentieths of a second) it kills, until none is left: exit status 1 where some resist.
# `tree` and `once` select by marker, descent and session; `pids` by id and start time.
mode=$1
shift
marker= nonce= wanted= grace=0
if [ "$mode" = pids ]; then
    signal=$1 grace=$2
    shift 2
    wanted=" $* "
else
    marker=$1 nonce=$2 signal=$3 grace=${4:-0}
fi
holds() { # FILE TEXT: whether the file has the text; read skips the NULs
    [ -n "$2" ] || return 1
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in *"$2"*) return 0 ;; esac
    done < "$1"
    return 1
} 2> /dev/null
facts() { # PID: sets state, parent, session, start
    read -r line < "/proc/$1/stat" || return 1
    set -- ${line##*) }
    state=$1 parent=$2 session=$4
    shift 19
    start=$1
} 2> /dev/null
find_processes() { # sets found (all) and theirs (without the wrapper's)
    found=' ' theirs=' '
    grown=yes
    while [ "$grown" = yes ]; do
        grown=no
        for directory in /proc/[0-9]*; do
            pid=${directory#/proc/}
            [ "$pid" = 1 ] && continue
            [ "$pid" = "$$" ] && continue
            case $found in *" $pid "*) continue ;; esac
            facts "$pid" || continue
            [ "$state" = Z ] && continue
            if [ "$mode" = pids ]; then
                case $wanted in *" $pid:$start "*) ;; *) continue ;; esac
            else
                case $found in
                    *" $parent "*) ;;
                    *" $session "*) ;;
                    *) holds "/proc/$pid/environ" "$marker" || continue ;;
                esac
            fi
            found="$found$pid "
            grown=yes
            holds "/proc/$pid/cmdline" "$nonce" || theirs="$theirs$pid "
        done
        [ "$mode" = pids ] && break
    done
}
pause() { sleep 0.05 2> /dev/null || sleep 1; }
kill_found() { # stopped first, so that nothing forks while we look for the rest
    before=
    while [ "$theirs" != "$before" ]; do
        before=$theirs
        kill -STOP $theirs
        find_processes
    done
    kill -KILL $theirs
} 2> /dev/null

find_processes
set -- $theirs
echo $#
[ $# -gt 0 ] || exit 0
kill -"$signal" $theirs 2> /dev/null
[ "$mode" = once ] && exit 0
while [ "$grace" -gt 0 ]; do
    find_processes
    [ "$theirs" = ' ' ] && exit 0
    pause
    grace=$((grace - 1))
done
rounds=0
find_processes
while [ "$theirs" != ' ' ]; do
    kill_found
    find_processes
    rounds=$((rounds + 1))
    [ "$rounds" -lt 40 ] || exit 1
    [ "$theirs" = ' ' ] || pause
done
exit 0
"""

LIST_PROCESSES = r"""
# NONCE: for each process NONCE, its stat line, and its command line as the kernel has it.
for directory in /proc/[0-9]*; do
    read -r line < "$directory/stat" || continue
    printf '%s %s\n' "$1" "$line"
    cat "$directory/cmdline"
done 2> /dev/null
exit 0
"""

REMOVE_CONTENT = 'cd "$1" && rm -rf -- ./* ./.[!.]* ./..?*'
