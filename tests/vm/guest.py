"""Guests of QEMU, and jobs in them. For tests and benchmarks.

    with Guest(folder, image_file) as guest:
        print(guest.run("uname -r").output)
        job = guest.start("heddle devices", uid=1000)
        job.wait()

A guest is ready when the constructor returns. Its console is the file `console` in the folder; jobs
travel over a virtio-serial port (agent.c), which the kernel's messages do not reach. What a test
waits for either comes, or fails with the last lines of the console. Guests are emulated (TCG) and
need no KVM; with HED_VM_ACCEL=kvm they run on the processor.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness.patience import PATIENCE  # noqa: E402
from vm import image  # noqa: E402

# What QEMU is called, its machine, a processor that is cheap to emulate, and the console.
MACHINES = {
    "aarch64": ("qemu-system-aarch64", "virt,gic-version=3", "cortex-a72", "ttyAMA0"),
    # Without the instructions that copy a string, which QEMU does byte by byte.
    "x86_64": ("qemu-system-x86_64", "q35", "max,-erms,-fsrm", "ttyS0"),
}
ACCELERATOR = os.environ.get("HED_VM_ACCEL", "tcg")
# On a loaded host, the kernel of x86-64 may find at its start that its timer does not work.
KERNEL_OPTIONS = "quiet panic=-1 nokaslr mitigations=off no_timer_check"


class Gone(AssertionError):
    """The guest ended while something was expected of it."""


class Done:
    """How a job ended."""

    def __init__(self, status, output):
        self.status = status
        self.output = output

    def __repr__(self):
        return f"status {self.status}: {self.output[-3000:]}"


class Job:
    def __init__(self, guest, number, text):
        self.guest = guest
        self.number = number
        self.text = text
        self.data = bytearray()
        self.status = None

    @property
    def output(self):
        return self.data.decode(errors="replace")

    def _until(self, condition, what, seconds):
        with self.guest.changed:
            good = self.guest.changed.wait_for(lambda: condition() or self.guest.gone,
                                               seconds or PATIENCE)
        if not condition():
            raise (Gone if good else AssertionError)(
                f"{what} of '{self.text}'; it said: {self.output[-2000:]}\n"
                f"the console: {self.guest.console()[-2000:]}")

    def wait(self, seconds=None):
        self._until(lambda: self.status is not None, "the end", seconds)
        return Done(self.status, self.output)

    def until_said(self, words, seconds=None):
        """Waits until its output contains the words."""
        self._until(lambda: words in self.output or self.status is not None, f"'{words}'", seconds)
        if words not in self.output:
            raise AssertionError(f"no '{words}' of '{self.text}': {self.wait()}")

    def kill(self, sig=signal.SIGKILL):
        """Sends a signal to all processes of the job, if there are any left."""
        if self.status is None and not self.guest.gone:
            self.guest.say(f"kill {self.number} {int(sig)}\n".encode())


class Guest:
    """`options` are more of QEMU's, such as those of qemu_options(). `network` has options of
    QEMU's own network, "" for the usual ones; without it there is no network card."""

    def __init__(self, folder, initramfs, *options, memory=512, cpus=1, network=None, reboots=False,
                 wait=True):
        program, machine, cpu, console = machine_of_this_host()
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.console_path = self.folder / "console"
        self.port, port = socket.socketpair()
        self.qmp, qmp = socket.socketpair()
        self.qmp_lock = threading.Lock()
        words = [program, "-nodefaults", "-no-user-config", "-display", "none",
                 "-machine", f"{machine},accel={ACCELERATOR}",
                 "-cpu", "host" if ACCELERATOR == "kvm" else cpu,
                 "-smp", str(cpus), "-m", str(memory),
                 "-kernel", str(image.kernel() / "vmlinuz"), "-initrd", str(initramfs),
                 "-append", f"console={console} {KERNEL_OPTIONS}",
                 "-serial", f"file:{self.console_path}",
                 "-chardev", f"socket,id=qmp,fd={qmp.fileno()}", "-mon", "chardev=qmp,mode=control",
                 "-chardev", f"socket,id=jobs,fd={port.fileno()}",
                 "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=jobs", *options]
        if network is not None:
            words += ["-netdev", f"user,id=net{network}",
                      "-device", "virtio-net-pci,netdev=net,romfile="]
        if not reboots:
            words.append("-no-reboot")  # a kernel that panics ends QEMU
        self.changed = threading.Condition()
        self.jobs = {}
        self.ready = False
        self.gone = False
        self.started = time.monotonic()
        with open(self.folder / "qemu", "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            pass_fds=(port.fileno(), qmp.fileno()))
        port.close()
        qmp.close()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if wait:
            self.until_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def until_ready(self, seconds=PATIENCE):
        with self.changed:
            self.changed.wait_for(lambda: self.ready or self.gone, seconds)
        if not self.ready:
            self.kill()
            raise Gone(f"the guest did not start:\n{(self.folder / 'qemu').read_text()}\n"
                       f"{self.console()[-3000:]}")

    def console(self):
        return self.console_path.read_text(errors="replace") if self.console_path.exists() else ""

    # ---- jobs --------------------------------------------------------------------------------

    def _read(self):
        """Takes what the agent says, until the guest is gone."""
        with self.port.makefile("rb") as stream:
            try:
                while line := stream.readline():
                    self._heard(line.decode().split(), stream)
            except OSError:
                pass
        with self.changed:
            self.gone = True
            self.changed.notify_all()

    def _heard(self, words, stream):
        data = stream.read(int(words[2])) if words[0] == "out" else b""
        with self.changed:
            if words[0] == "ready":
                self.ready = True
            elif words[0] == "out":
                self.jobs[int(words[1])].data += data
            else:
                self.jobs[int(words[1])].status = int(words[2])
            self.changed.notify_all()

    def say(self, data):
        try:
            self.port.sendall(data)
        except OSError:
            raise Gone(f"the guest is gone: {self.console()[-2000:]}") from None

    def start(self, text, uid=0, **env):
        """Starts a job: shell text, with variables of its environment."""
        settings = "".join(f"export {k}='{v}'\n" for k, v in env.items())
        text = str(text)
        with self.changed:
            job = Job(self, len(self.jobs), text)
            self.jobs[job.number] = job
        data = (settings + text).encode()
        self.say(f"run {job.number} {uid} {len(data)}\n".encode() + data)
        return job

    def run(self, text, uid=0, seconds=None, **env):
        """Runs a job to its end."""
        return self.start(text, uid, **env).wait(seconds)

    # ---- the machine -------------------------------------------------------------------------

    def command(self, name, **arguments):
        """A command of QMP, and its answer."""
        with self.qmp_lock:
            if not hasattr(self, "qmp_stream"):
                self.qmp.settimeout(PATIENCE)
                self.qmp_stream = self.qmp.makefile("rw")
                self.qmp_stream.readline()
                self._ask("qmp_capabilities", {})
            return self._ask(name, arguments)

    def _ask(self, name, arguments):
        self.qmp_stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.qmp_stream.flush()
        while line := self.qmp_stream.readline():
            answer = json.loads(line)
            if "event" in answer:
                continue
            if "error" in answer:
                raise AssertionError(f"{name}: {answer['error']}")
            return answer["return"]
        raise Gone(f"QEMU is gone: {(self.folder / 'qemu').read_text()}")

    def pause(self):
        self.command("stop")

    def resume(self):
        self.command("cont")

    def reset(self):
        """As the button of a computer does. Its jobs never end."""
        self.ready = False
        self.command("system_reset")
        self.until_ready()

    def cpu_seconds(self):
        """How much processor time QEMU has used."""
        return cpu_seconds(self.process.pid)

    def kill(self):
        """As kill -9 does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        # QEMU's own end is what ends the reader; this end stays open until then.
        self.reader.join(PATIENCE)
        self.port.close()
        self.qmp.close()


def qemu_options(heddle, name, memory=512):
    """Those that connect a guest to the server that listens at vm:NAME."""
    return subprocess.run([heddle, "vm", "qemu-args", name, "--ram", f"{memory}M"], check=True,
                          capture_output=True, text=True).stdout.split()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_of_this_host():
    if platform.machine() not in MACHINES:
        raise image.Missing(f"no guest is known for {platform.machine()}")
    machine = MACHINES[platform.machine()]
    if not shutil.which(machine[0]):
        raise image.Missing(f"there is no {machine[0]}")
    return machine
