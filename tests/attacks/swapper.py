"""Hostile code: swaps directories, files, links and worse in a workspace, as fast as it can, and prints how often.

Standard library only. Arguments: the directory to work in, the number of swaps, a directory outside of the workspace
and a file in it.
"""

import ctypes
import errno
import os
import shutil
import socket
import stat
import sys

EXCHANGE = 2
HERE = -100  # AT_FDCWD

libc = ctypes.CDLL(None, use_errno=True)
place, goal, outside, canary = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]


def bind(name):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(name)


def link_inside(name):
    os.link("hard", name)


def write(name, content=b"inside"):
    with open(name, "wb") as file:
        file.write(content)


def fill(name):
    """The directory that is swapped, as everybody expects it."""
    os.makedirs(name + "/sub", exist_ok=True)
    write(name + "/file")
    write(name + "/sub/file")


def link_to(target):
    return lambda name: os.symlink(target, name)


far = "../" * 20
DIRECTORIES = [
    link_to(outside),
    link_to("/"),
    link_to(".."),
    link_to("../../.."),
    link_to(far + outside.lstrip("/")),
    link_to("/proc/self/root" + outside),
    link_to("/proc/self/cwd"),
    os.mkfifo,
    write,
    os.mkdir,
    bind,
    link_inside,
]
FILES = [
    link_to(outside + "/" + canary),
    link_to(far + outside.lstrip("/") + "/" + canary),
    os.mkfifo,
    os.mkdir,
    bind,
    link_inside,
    lambda name: os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
]


def remove(name):
    try:
        if stat.S_ISDIR(os.lstat(name).st_mode):
            shutil.rmtree(name, ignore_errors=True)
        else:
            os.unlink(name)
    except FileNotFoundError:
        pass


def others(name, makers):
    """What takes a name's place in turn, where it can be had."""
    found = []
    for number, make in enumerate(makers):
        other = f"{name}.{number}"
        remove(other)
        try:
            make(other)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES):
                raise
            continue
        found.append(other.encode())
    return found


def leads_out(name):
    return os.path.islink(name) and outside.lstrip("/").encode() in os.readlink(name)


def lay_out():
    """Anew, whatever was done to it meanwhile. The pairs that are swapped."""
    while True:
        try:
            os.makedirs(place, exist_ok=True)
            os.chdir(place)
            write("hard")
            for name in ("dir", "file"):
                remove(name)
            fill("dir")
            write("file")
            pairs = [(b"dir", other) for other in others("dir", DIRECTORIES)]
            pairs += [(b"dir/sub", other) for other in others("sub", DIRECTORIES)]
            pairs += [(b"dir/file", other) for other in others("deep", FILES)]
            pairs += [(b"file", other) for other in others("file", FILES)]
            return pairs + 4 * [pair for pair in pairs if leads_out(pair[1])]
        except OSError:  # it is changed from outside in this moment
            os.chdir(start)


start = os.getcwd()
swapped = lost = 0
pairs = lay_out()
while swapped < goal:
    for name, other in pairs:
        one = libc.renameat2(HERE, name, HERE, other, EXCHANGE)
        two = libc.renameat2(HERE, name, HERE, other, EXCHANGE)
        swapped += (one == 0) + (two == 0)
        if one or two:
            lost += 1
            os.chdir(start)
            pairs = lay_out()
            break
print(swapped, lost)
