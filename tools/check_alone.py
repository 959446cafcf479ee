#!/usr/bin/env python3
"""Checks that the kernel library links alone.

check_symbols.py knows our own symbols and who may call whom. This looks at the archives of base and
of the kernel's rooms together: what they leave undefined must be defined by one of them, or by the
few libraries of the system that the kernel library may use. LLVM is for the compiler only.

    check_alone.py [--cc CC] [--nm NM] [--library FILE]... ARCHIVE...

The C library, libm, libpthread and the compiler's own library are found by CC; --library names
others, such as liblz4.
"""

import argparse
import os
import re
import subprocess
import sys

# libpthread and libdl are parts of libc since glibc 2.34.
SYSTEM = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc.a"]

# What the loader, the compilers and their sanitizers define.
TOOLCHAIN = re.compile(r"_GLOBAL_OFFSET_TABLE_|__dso_handle|_DYNAMIC|__ehdr_start|__stack_chk_"
                       r"|_(ITM|Unwind)_|__(asan|ubsan|tsan|lsan|sanitizer|gcov|cyg_profile)_"
                       r"|__aarch64_|__aeabi_|__tls_get_addr")


def find_system(cc):
    """The paths of SYSTEM, without those that this system does not have."""
    paths = [subprocess.run([cc, "-print-file-name=" + name], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip() for name in SYSTEM]
    return [path for path in paths if os.path.isabs(path)]


def list_symbols(nm, path, options):
    """(name, letter) of each symbol; versions ("@GLIBC_2.17") are cut off."""
    text = subprocess.run([nm, "-P", *options, path], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and len(words[1]) == 1:
            yield words[0].split("@")[0], words[1]


def split_symbols(symbols):
    """The names that are defined and those that are needed. Local ones do not count."""
    defined, needed = set(), set()
    for name, letter in symbols:
        if letter == "U":
            needed.add(name)
        elif letter.isupper() or letter in "vwi":
            # A weak symbol without a definition may stay so.
            defined.add(name)
    return defined, needed


def find_missing(archives, system):
    """For each archive, what nobody may define. archives: {path: (defined, needed)}."""
    ours = set().union(*(defined for defined, _ in archives.values()))
    return {path: sorted(name for name in needed - ours - system if not TOOLCHAIN.match(name))
            for path, (_, needed) in archives.items()}


def main(args):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cc", default="cc")
    p.add_argument("--nm", default="nm")
    p.add_argument("--library", action="append", default=[], metavar="FILE",
                   help="a shared library of the system that may define what is needed")
    p.add_argument("archives", nargs="+", metavar="ARCHIVE")
    a = p.parse_args(args)

    system = set()
    for path in find_system(a.cc) + a.library:
        options = [] if path.endswith(".a") else ["-D"]
        system |= split_symbols(list_symbols(a.nm, path, options))[0]
    archives = {path: split_symbols(list_symbols(a.nm, path, [])) for path in a.archives}
    bad = 0
    for path, names in find_missing(archives, system).items():
        for name in names:
            print(f"{path}: needs {name}, which neither these archives nor the libraries that the "
                  "kernel library may use define")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
