"""Tests of tools/sandbox_calls.py."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import sandbox_calls  # noqa: E402

LOG = """\
7  socket(AF_INET, SOCK_STREAM, 0) = -1 EPERM (Operation not permitted)
8  symlink("a", "/b") = -1 ENOSYS (Function not implemented)
8  seccomp(SECCOMP_SET_MODE_FILTER, 0, {len=4, filter=0x1} <unfinished ...>
7  symlink("a", "/c") = -1 ENOSYS (Function not implemented)
8  <... seccomp resumed>)            = 0
8  socket(AF_UNIX, SOCK_SEQPACKET, 0 <unfinished ...>
8  <... socket resumed>)             = -1 EACCES (Permission denied)
8  clone(child_stack=0x1, flags=CLONE_THREAD) = 2 /* 9 in strace's PID NS */
9  openat(AT_FDCWD, "/dev/x", O_RDWR) = -1 ENOENT (No such file or directory)
9  ioctl(3</dev/y>, _IOC(_IOC_READ, 0x46, 0x2a, 0x20), 0x7) = 0
9  socket(AF_INET, SOCK_STREAM, 0) = -1 EACCES (Permission denied)
9  +++ killed by SIGSYS (core dumped) +++
"""


class Calls(unittest.TestCase):
    def test_refusals_after_the_filter_are_counted(self):
        self.assertEqual(sandbox_calls.count_calls(LOG.splitlines(), False), [
            (1, "killed by SIGSYS (core dumped)", "killed", ""),
            (2, "socket", "EACCES", "AF_UNIX, SOCK_SEQPACKET, 0")])

    def test_all_calls_are_told_with_paths_and_commands(self):
        said = [row[1] for row in sandbox_calls.count_calls(LOG.splitlines(), True)]
        self.assertEqual(said, ["clone", "ioctl _IOC(_IOC_READ, 0x46, 0x2a, 0x20)",
                                "killed by SIGSYS (core dumped)", "openat /dev/x", "socket"])


if __name__ == "__main__":
    unittest.main()
