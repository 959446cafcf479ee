#!/usr/bin/env python3
"""`heddle vm`: what it prints, and whether QEMU accepts it. This test plays the server, as far as
QEMU looks at it before a guest runs.

    HED_BUILD=build/dev vm.py [Case.test...]
"""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import unittest
import xml.etree.ElementTree as ElementTree

from case import PATIENCE, SOURCE, Case, clean_environment

MIB = 1 << 20
MAGIC = b"HEDDLEVM" + struct.pack("<II", 1, 0) + bytes(16)

# The vhost-user protocol, as far as QEMU speaks it when it makes the device.
GET_FEATURES, GET_PROTOCOL_FEATURES, GET_CONFIG = 1, 15, 24
REPLIES = {GET_FEATURES: struct.pack("<Q", 1 << 32 | 1 << 30),  # virtio 1, protocol features
           GET_PROTOCOL_FEATURES: struct.pack("<Q", 1 << 9),    # configuration
           GET_CONFIG: struct.pack("<IIIQ", 0, 8, 0, 3)}        # the guest's CID


def play_vsock(listening):
    """Answers one QEMU after the other until the socket is closed."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            while head := connection.recv(12):
                request, _, size = struct.unpack("<III", head)
                if size:
                    connection.recv(size, socket.MSG_WAITALL)
                if request in REPLIES:
                    reply = REPLIES[request]
                    connection.sendall(struct.pack("<III", request, 1 | 1 << 2, len(reply)) + reply)


class GuestCase(Case):
    """A guest whose name nobody else uses, and the paths that belong to it."""

    def setUp(self):
        super().setUp()
        self.env = clean_environment(XDG_RUNTIME_DIR=self.dir)
        self.name = f"test-{os.getpid()}-{self.id().rsplit('_', 1)[-1]}"
        self.options = self.args("--size", "32M").stdout.split()
        self.socket = self.value("-chardev", "path")
        self.window = self.value("-object", "mem-path")
        try:
            os.makedirs(os.path.dirname(self.socket), exist_ok=True)
        except OSError as e:
            self.skipTest(f"no folder for sockets: {e}")

    def args(self, *words, code=0, says=None):
        return self.expect(code, "vm", "qemu-args", self.name, *words, env=self.env, says=says)

    def value(self, option, key, options=None):
        """The value of key= in the last such option that has it."""
        options = options or self.options
        found = [part[len(key) + 1:] for i, word in enumerate(options) if word == option
                 for part in options[i + 1].split(",") if part.startswith(key + "=")]
        return found[-1]

    def serve(self, size=32 * MIB):
        """Plays a server: a socket, and a window unless size is 0."""
        if size:
            with open(self.window, "wb") as f:
                self.addCleanup(os.unlink, self.window)
                f.write(MAGIC)
                f.truncate(size)
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(self.socket)
        self.addCleanup(os.unlink, self.socket)
        listening.listen()
        return listening


class QemuArgs(GuestCase):
    """The options for QEMU."""

    def test_all_options_are_printed(self):
        self.serve(64 * MIB)
        r = self.args("--ram", "512M")
        self.assertEqual(r.stderr, "")
        self.assertEqual(r.stdout, (
            "-object memory-backend-memfd,id=heddle-ram,size=512M,share=on "
            "-machine memory-backend=heddle-ram "
            f"-chardev socket,id=heddle-vsock,path={self.socket} "
            "-device vhost-user-vsock-pci,chardev=heddle-vsock "
            f"-object memory-backend-file,id=heddle-window,mem-path={self.window},size=64M,"
            "share=on "
            "-device ivshmem-plain,memdev=heddle-window\n"))

    def test_lines_have_one_option_each(self):
        self.serve()
        lines = self.args("--ram", "3G", "--lines").stdout.split("\n")
        self.assertEqual(lines.pop(), "")
        self.assertTrue(all(line.startswith("-") and len(line.split()) == 2 for line in lines))
        self.assertEqual(" ".join(lines), self.args("--ram", "3G").stdout.strip())

    def test_without_ram_there_is_a_default_and_a_word_about_it(self):
        self.serve()
        r = self.args()
        self.assertEqual(self.value("-object", "size", r.stdout.split()[:2]), "2G")
        self.assertIn("--ram", r.stderr)
        self.assertEqual(len(r.stderr.strip().split("\n")), 1)

    def test_the_window_can_be_left_out(self):
        self.serve()
        self.assertNotIn("ivshmem", self.args("--no-window").stdout)
        self.assertNotIn("ivshmem", self.args("--size", "0", code=1, says="restart").stdout)

    def test_a_server_without_window_is_noticed(self):
        self.serve(0)
        r = self.args("--ram", "1G", says="no window")
        self.assertNotIn("ivshmem", r.stdout)
        self.assertIn("vhost-user-vsock-pci", r.stdout)

    def test_a_missing_server_is_explained(self):
        r = self.args(code=1, says=f"heddle serve --listen vm:{self.name}")
        self.assertEqual(r.stdout, "")
        r = self.args("--no-window", code=1)
        self.assertEqual(r.stdout, "")
        # With the size, a script can be written before the server is there.
        r = self.args("--size", "256M", says=f"heddle serve --listen vm:{self.name},size=256M")
        self.assertIn("size=256M", r.stdout)
        self.assertNotIn("ivshmem", self.args("--size", "0").stdout)

    def test_a_dead_server_is_noticed(self):
        self.serve().close()
        self.assertEqual(self.args(code=1, says="is gone").stdout, "")

    def test_another_size_is_refused(self):
        self.serve()
        self.args("--size", "64M", code=1, says="the window has 32 MiB, not 64 MiB")
        self.args("--size", "32M")

    def test_a_file_that_is_no_window_is_refused(self):
        self.serve()
        with open(self.window, "r+b") as f:
            f.write(b"something")
        self.args(code=1, says="is not a window")
        os.unlink(self.window)
        os.symlink("/dev/zero", self.window)
        self.args(code=1, says="is not a window")
        self.args("--no-window")

    def test_bad_words_are_refused(self):
        for words in (["--ram", "lots"], ["--ram", "0"], ["--ram", "1000"], ["--size", "33M"],
                      ["--size", "x"], ["another"], ["--nowindow"]):
            self.args(*words, code=2)
        for name in ("", "auto", "a/b", "a,b", "vm:alpha", "alpha,size=1G", "x" * 48, ".."):
            self.expect(2, "vm", "qemu-args", name, env=self.env)
        self.expect(2, "vm", "qemu-args", env=self.env, says="no guest given")

    @unittest.skipIf(os.geteuid() == 0, "root's sockets are always in /run/heddle")
    def test_odd_folders(self):
        del self.env["XDG_RUNTIME_DIR"]
        self.args(code=1, says="XDG_RUNTIME_DIR")
        for folder, part in (("a,b", "a,,b"), ("a b", None)):
            self.env["XDG_RUNTIME_DIR"] = self.path(folder)
            r = self.args("--size", "32M", code=0 if part else 1)
            self.assertIn(part or "", r.stdout)


class Qemu(GuestCase):
    """QEMU itself accepts the options."""

    def start(self, *command):
        """Starts QEMU up to where a guest would begin, and ends it."""
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        listening = self.serve()
        server = threading.Thread(target=play_vsock, args=(listening,))
        server.start()
        try:
            r = subprocess.run(
                [*command, *self.args("--ram", "64M").stdout.split(), "-nodefaults", "-S",
                 "-display", "none", "-monitor", "stdio"],
                input="info pci\ninfo memdev\nquit\n", capture_output=True, text=True,
                timeout=PATIENCE, env=self.env)
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            server.join(PATIENCE)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r.stdout)
        self.assertIn("1af4:1110", r.stdout)  # ivshmem
        self.assertIn("1af4:1053", r.stdout)  # vsock
        self.assertIn("heddle-ram", r.stdout)

    def test_on_x86_64(self):
        self.start("qemu-system-x86_64", "-machine", "q35")

    def test_on_an_old_x86_64(self):
        self.start("qemu-system-x86_64", "-m", "64M")

    def test_on_aarch64(self):
        self.start("qemu-system-aarch64", "-machine", "virt")


class Libvirt(GuestCase):
    """The XML for libvirt."""

    def xml(self, *words, code=0):
        return self.expect(code, "vm", "libvirt", self.name, *words, env=self.env).stdout

    def test_every_part_is_there(self):
        self.serve(64 * MIB)
        root = ElementTree.fromstring(self.xml())
        self.assertEqual(root.find("memoryBacking/access").get("mode"), "shared")
        self.assertEqual(root.find("memoryBacking/source").get("type"), "memfd")
        shmem = root.find("devices/shmem")
        self.assertEqual(os.path.join("/dev/shm", shmem.get("name")), self.window)
        self.assertEqual(shmem.find("model").get("type"), "ivshmem-plain")
        self.assertEqual((shmem.find("size").get("unit"), shmem.find("size").text), ("M", "64"))
        space = "{http://libvirt.org/schemas/domain/qemu/1.0}"
        words = [a.get("value") for a in root.iterfind(f"{space}commandline/{space}arg")]
        self.assertEqual(words, ["-chardev", f"socket,id=heddle-vsock,path={self.socket}",
                                 "-device", "vhost-user-vsock-pci,chardev=heddle-vsock"])

    def test_without_a_window(self):
        self.serve()
        self.assertIsNone(ElementTree.fromstring(self.xml("--no-window")).find("devices"))

    def test_without_a_server(self):
        self.assertEqual(self.xml(code=1), "")
        self.assertIn("<shmem", self.xml("--size", "1G"))

    def test_ram_is_libvirts_own(self):
        self.xml("--ram", "1G", code=2)


class List(GuestCase):
    """The guests that servers listen for."""

    def guest(self):
        """This test's guest as JSON; None if it is not listed."""
        r = self.expect(0, "vm", "list", "--json", env=self.env)
        found = [g for g in json.loads(r.stdout)["guests"] if g["name"] == self.name]
        return found[0] if found else None

    def row(self):
        lines = self.expect(0, "vm", "list", env=self.env).stdout.split("\n")
        [line] = [line for line in lines if line.split()[:1] == [self.name]]
        return line.split()[1:]

    def test_a_server_listens(self):
        self.assertIsNone(self.guest())
        listening = self.serve(64 * MIB)
        self.assertEqual(self.guest(), {"name": self.name, "socket": self.socket,
                                        "window": self.window, "window_bytes": 64 * MIB,
                                        "server": "listens"})
        self.assertEqual(self.row(), ["64", "MiB", "listens"])
        # Nobody has connected: a server would have taken that for QEMU.
        listening.setblocking(False)
        self.assertRaises(BlockingIOError, listening.accept)

    def test_qemu_is_connected(self):
        listening = self.serve(64 * MIB)
        with socket.socket(socket.AF_UNIX) as qemu:
            qemu.connect(self.socket)
            with listening.accept()[0]:
                self.assertEqual(self.row(), ["64", "MiB", "connected"])
        self.assertEqual(self.row(), ["64", "MiB", "listens"])

    def test_a_server_is_gone(self):
        self.serve().close()
        self.assertEqual(self.row(), ["32", "MiB", "gone"])

    def test_there_is_no_window(self):
        self.serve(0)
        self.assertEqual(self.row(), ["-", "listens"])
        self.assertEqual(self.guest()["window"], "")

    def test_only_a_window_is_left(self):
        self.serve().close()
        os.rename(self.socket, self.socket + ".away")
        try:
            self.assertEqual(self.row(), ["32", "MiB", "none"])
        finally:
            os.rename(self.socket + ".away", self.socket)

    def test_names_that_are_none_are_left_out(self):
        odd = self.socket[:-5] + " \n.sock"
        with open(odd, "wb"):
            self.addCleanup(os.unlink, odd)
        names = [g["name"] for g in json.loads(
            self.expect(0, "vm", "list", "--json", env=self.env).stdout)["guests"]]
        self.assertFalse([name for name in names if "\n" in name])


class Rule(Case):
    """The rule with which a guest's udev gives windows to the group heddle."""

    def run_rule(self, group=None, path=os.environ["PATH"]):
        """Does what udev does for a device whose folder is self.dir. Another group stands for
        heddle, which may not exist here."""
        with open(os.path.join(SOURCE, "share", "udev", "60-heddle-window.rules"),
                  encoding="utf-8") as f:
            [rule] = [line for line in f if not line.startswith("#")]
        self.assertIn('ATTR{vendor}=="0x1af4", ATTR{device}=="0x1110"', rule)
        [script] = re.findall(r"RUN\+=\"/bin/sh -c '([^']*)'\"$", rule.strip())
        script = script.replace("$sys$devpath", self.dir).replace("$$", "$")
        script = script.replace("chgrp heddle", f"chgrp {group or os.getgid()}")
        self.assertNotIn("%", script)
        return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True,
                              timeout=PATIENCE, env={"PATH": path})

    def modes(self):
        return {name: os.stat(self.path(name)).st_mode & 0o777 for name in os.listdir(self.dir)}

    def test_the_group_may_use_the_window(self):
        for name in ("resource2", "resource2_wc", "resource0", "config"):
            self.write(name, "", 0o600)
        r = self.run_rule()
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertEqual(self.modes(), {"resource2": 0o660, "resource2_wc": 0o660,
                                        "resource0": 0o600, "config": 0o600})

    def test_a_kernel_without_write_combining(self):
        self.write("resource2", "", 0o600)
        self.assertEqual(self.run_rule().returncode, 0)
        self.assertEqual(self.modes(), {"resource2": 0o660})

    def test_a_device_that_was_just_plugged_in(self):
        """The file appears while the rule sleeps."""
        programs = tempfile.mkdtemp(dir=os.environ["HED_SCRATCH"])
        sleep = os.path.join(programs, "sleep")
        with open(sleep, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\ntouch {self.path('resource2')}\n")
        os.chmod(sleep, 0o755)
        self.run_rule(path=programs + ":" + os.environ["PATH"])
        self.assertEqual(self.modes(), {"resource2": 0o660})

    def test_without_the_group_nothing_changes(self):
        self.write("resource2", "", 0o600)
        self.assertIn("no-such-group", self.run_rule("no-such-group").stderr)
        self.assertEqual(self.modes(), {"resource2": 0o600})


if __name__ == "__main__":
    unittest.main()
