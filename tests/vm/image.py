#!/usr/bin/env python3
"""What a guest boots: Debian's kernel, and an initramfs with busybox, heddle's client and programs.

    tests/vm/image.py       gets the kernel, if it is not here yet, and says where it is

The kernel comes out of Debian's package for clouds, which is the small one. It is unpacked once,
into the folder `heddle/vm` of the user's cache; nothing is installed. Programs and libraries have
the paths in the guest that they have here, so paths in commands and in files (RUNPATH) stay right.
"""

import fcntl
import lzma
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# platform.machine(): Debian's name of the architecture
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}
# Everything else is in the kernel, or is not needed. What these depend on comes with them.
MODULES = ("virtio_pci", "virtio_console", "virtio_net", "vmw_vsock_virtio_transport")


class Missing(Exception):
    """Something that this machine lacks; tests exit with 77."""


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "heddle" / "vm"


def run(*words, **options):
    try:
        return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, **options).stdout
    except FileNotFoundError:
        raise Missing(f"there is no {words[0]}") from None
    except subprocess.CalledProcessError as e:
        raise Missing(f"{words[0]} {words[1]} failed: {e.stderr.strip()[-500:]}") from None


# ---- the kernel ------------------------------------------------------------------------------


def module_files(tree):
    """{name: file} of all modules below tree."""
    return {re.sub(r"\.ko(\.xz)?$", "", p.name).replace("-", "_"): p
            for p in tree.rglob("*.ko*")}


def module_data(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def module_order(files, builtin):
    """The names of the needed modules, each after those that it depends on."""
    order = []

    def visit(name):
        if name in order or name in builtin:
            return
        if name not in files:
            raise Missing(f"the kernel has no module {name}")
        found = re.search(rb"\0depends=([^\0]*)\0", module_data(files[name]))
        for needed in found[1].decode().split(",") if found and found[1] else ():
            visit(needed.replace("-", "_"))
        order.append(name)

    for name in MODULES:
        visit(name)
    return order


def unpack_kernel(package, target):
    """Leaves target/vmlinuz, target/order and target/NAME.ko."""
    with tempfile.TemporaryDirectory(prefix="heddle-vm") as scratch:
        tree = Path(scratch)
        run("dpkg-deb", "-x", package, tree)
        kernels = list(tree.glob("boot/vmlinuz-*"))
        modules = list(tree.glob("**/lib/modules/*"))
        if len(kernels) != 1 or len(modules) != 1:
            raise Missing(f"{package.name} has {len(kernels)} kernels, {len(modules)} module trees")
        builtin = {Path(line).stem.replace("-", "_")
                   for line in (modules[0] / "modules.builtin").read_text().splitlines()}
        files = module_files(modules[0])
        order = module_order(files, builtin)
        for name in order:
            (target / f"{name}.ko").write_bytes(module_data(files[name]))
        (target / "order").write_text("".join(f"{name}.ko\n" for name in order))
        shutil.copyfile(kernels[0], target / "vmlinuz")


def fetch_kernel(target):
    architecture = ARCHITECTURES[platform.machine()]
    depends = run("apt-cache", "depends", f"linux-image-cloud-{architecture}")
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise Missing("the archive has no kernel package")
    with tempfile.TemporaryDirectory(prefix="heddle-vm") as scratch:
        run("apt-get", "-q", "download", found[1], cwd=scratch)
        package, = Path(scratch).glob("*.deb")
        unpack_kernel(package, target)


def kernel():
    """The folder of the unpacked kernel. The first caller gets it; others wait meanwhile."""
    if platform.machine() not in ARCHITECTURES:
        raise Missing(f"no guest is known for {platform.machine()}")
    folder = cache()
    target = folder / platform.machine()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as e:
        raise Missing(f"there is no place for a kernel: {e}") from None
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=folder) as part:
                whole = Path(part) / "kernel"
                whole.mkdir()
                fetch_kernel(whole)
                whole.rename(target)
    return target


# ---- the initramfs ---------------------------------------------------------------------------


def libraries(program):
    """The shared libraries that a program or library needs, as the loader finds them here."""
    p = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return [found[1] for line in p.stdout.splitlines()
            if (found := re.search(r"(?:=> )?(/\S+) \(0x", line))]


class Image:
    """The files of an initramfs, by their paths in the guest."""

    def __init__(self):
        self.files = {}  # path: (mode, bytes)
        busybox = shutil.which("busybox")
        if not busybox or libraries(busybox):
            raise Missing("there is no static busybox (busybox-static)")
        self.put("/bin/busybox", Path(busybox).read_bytes())
        for applet in run(busybox, "--list").split():
            if applet != "busybox":
                self.files[f"/bin/{applet}"] = (stat.S_IFLNK | 0o777, b"busybox")
        self.put("/init", (HERE / "boot").read_bytes())
        self.files["/dev/console"] = (stat.S_IFCHR | 0o600, b"")
        for folder in ("/proc", "/sys", "/run"):
            self.files[folder] = (stat.S_IFDIR | 0o755, b"")
        self.files["/tmp"] = (stat.S_IFDIR | 0o1777, b"")
        self.put("/etc/passwd", b"root:x:0:0::/tmp:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")
        self.put("/etc/group", b"root:x:0:\nuser:x:1000:\n")
        self.kernel = kernel()
        for file in self.kernel.iterdir():
            if file.name != "vmlinuz":
                self.put(f"/modules/{file.name}", file.read_bytes())

    def put(self, path, data):
        self.files[str(path)] = (stat.S_IFREG | 0o755, data)

    def add(self, *paths, where=None):
        """Files of this machine, each with the libraries that it needs, without what only a
        debugger reads. `where` is another path for it in the guest."""
        for path in map(os.path.abspath, paths):
            target = where or path
            if target in self.files:
                continue
            data = Path(path).read_bytes()
            if data[:4] == b"\x7fELF":
                data = stripped(path) or data
            self.put(target, data)
            if data[:4] == b"\x7fELF":
                self.add(*libraries(path))

    def write(self, target):
        """In the format that the kernel knows (newc)."""
        folders = {str(p) for path in self.files for p in Path(path).parents if str(p) != "/"}
        files = {f: (stat.S_IFDIR | 0o755, b"") for f in folders} | self.files
        with open(target, "wb") as out:
            for number, path in enumerate(sorted(files), 1):
                mode, data = files[path]
                write_entry(out, number, path[1:], mode, data)
            write_entry(out, 0, "TRAILER!!!", 0, b"")


def stripped(path):
    with tempfile.NamedTemporaryFile(prefix="heddle-vm") as out:
        if not shutil.which("strip") or subprocess.run(
                ["strip", "-g", "-o", out.name, path], capture_output=True, check=False).returncode:
            return None
        return Path(out.name).read_bytes()


def write_entry(out, number, name, mode, data):
    console = stat.S_ISCHR(mode)  # the only device
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 5 if console else 0, 1 if console else 0,
              len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
    out.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


def main():
    try:
        print(kernel())
    except Missing as e:
        sys.exit(f"image.py: {e}")


if __name__ == "__main__":
    main()
