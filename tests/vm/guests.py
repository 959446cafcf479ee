"""Shared by the tests over `vm:`: servers that listen for guests, and guests that are connected."""

import os
import signal

import case
from harness.patience import until
from vm import guest

COPY = case.BUILD / "tests/vm/vm_copy"
HOSTILE = case.BUILD / "tests/vm/vm_hostile"
WINDOW = 256  # MiB


class VmCase(case.Case):
    address = "vm:"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            os.environ["XDG_RUNTIME_DIR"] = cls.keeper.dir  # where the sockets for QEMU are

    @staticmethod
    def name(short):
        """Of a guest; other tests may run at the same time."""
        return f"test-{short}-{os.getpid()}"

    @classmethod
    def listen(cls, short, size=WINDOW):
        return f"vm:{cls.name(short)},size={size}M"

    @classmethod
    def boot_guest(cls, short, image, **more):
        """A guest that is connected to the server, which hears of its end."""
        cls.addClassCleanup(cls.until_gone, short)
        options = guest.qemu_options(case.HEDDLE, cls.name(short))
        return cls.boot(image, *options, name=short, **more)

    @classmethod
    def guest_state(cls, short):
        """What the server says about a guest."""
        found, = (g for g in cls.server.status()["guests"] if g["name"] == cls.name(short))
        return found

    @classmethod
    def until_empty(cls, short):
        """Waits until nothing is left of a guest's programs: no worker, no piece of the window."""
        until(lambda: cls.guest_state(short)["clients"] == 0 and
              cls.guest_state(short)["used_bytes"] == 0, lambda: str(cls.guest_state(short)))

    @classmethod
    def until_gone(cls, short):
        """Waits until the server knows that there is no such guest any more."""
        until(lambda: not cls.guest_state(short)["connected"])
        cls.until_empty(short)

    def kill_worker(self, pid):
        """Workers may have processes and users of their own; the listener's number is ours."""
        os.kill(pid, signal.SIGKILL)

    def window_pages(self, short):
        """Bytes of the host's memory that a window takes."""
        words = guest.qemu_options(case.HEDDLE, self.name(short))
        path, = (w.split("mem-path=")[1].split(",")[0] for w in words if "mem-path=" in w)
        return os.stat(path).st_blocks * 512
