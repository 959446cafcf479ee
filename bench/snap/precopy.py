"""How long a program stands still when it is moved, beside what the last round takes at the speed
of the link. Run it with the environment of the test e2e.snap_precopy_*.

    precopy.py TRANSPORT [MIB] [MOVES]

One line per move: bytes of device memory, rounds, bytes of the last round, its time at the speed of
the whole move, and the time for which the program was held.
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/e2e/snap"))
import precopy  # noqa: E402


def main():
    transport = sys.argv[1]
    mib = int(sys.argv[2]) if len(sys.argv) > 2 else 512
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    folder = tempfile.mkdtemp(prefix="hed")
    servers = precopy.Servers(transport, folder)
    try:
        program = precopy.moves.Program(servers.address(0), rounds=1000000, pause=2000, mib=mib)
        print("MIB  rounds  last_MIB  at_link_ms  held_ms  of_it_hold_ms  total_ms")
        for i in range(count):
            a = precopy.words(program.ask("move", "-a", servers.address((i + 1) % 2)))
            link = int(a["written"]) / int(a["total_us"])  # bytes per microsecond
            print(f"{int(a['bytes']) >> 20:4}  {a['rounds']:>6}  {int(a['last']) / 2**20:8.1f}  "
                  f"{int(a['last']) / link / 1e3:10.1f}  {int(a['stall_us']) / 1e3:7.1f}  "
                  f"{int(a['hold_us']) / 1e3:13.1f}  {int(a['total_us']) / 1e3:8.1f}", flush=True)
        program.process.kill()
        program.process.wait()
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
