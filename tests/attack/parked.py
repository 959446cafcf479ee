"""Workers whose clients are away: the status shows them, they end in time, and they can be evicted.

    parked.py      HED_BUILD: the build; HED_PARK: the program attack_park
"""

import os
from pathlib import Path
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e" / "remote"))
from serve_case import HEDDLE, Case, Server, clean_environment, until  # noqa: E402

PARK = os.environ.get("HED_PARK", "")


class Parked(Case):
    def park(self, server):
        """A client that has parked its worker. It returns when it is told, and says how it went."""
        client = subprocess.Popen([PARK, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True,
                                  env=clean_environment(HEDDLE_GPU=f"shm:{server.path}"))
        self.addCleanup(client.communicate)
        self.assertEqual(client.stdout.readline(), "parked\n")
        return client

    def come_back(self, client):
        client.stdin.write("\n")
        client.stdin.flush()
        return client.stdout.readline().strip()

    def only(self, server):
        return server.status()["clients"][0]

    def test_the_status_shows_it(self):
        # An idle client would be gone; this one is away.
        server = Server(self, "--idle", "1")
        client = self.park(server)
        self.assertTrue(self.only(server)["parked"])
        shown = subprocess.run([HEDDLE, "serve", "--list", "--listen", f"shm:{server.path}"],
                               env=clean_environment(), capture_output=True, text=True)
        self.assertIn(" parked ", shown.stdout, shown.stderr)
        until(lambda: self.only(server)["seconds"] > 2.5)
        until(lambda: self.only(server)["channels"] == 0)
        self.assertEqual(self.come_back(client), "returned")
        self.assertFalse(self.only(server)["parked"])

    def test_nobody_returns(self):
        server = Server(self, "--park-timeout", "1")
        client = self.park(server)
        until(lambda: not server.status()["clients"])
        self.assertIn("did not return within 1 s (--park-timeout)", server.log())
        self.assertEqual(self.come_back(client), "refused")

    def test_it_counts_and_can_be_evicted(self):
        server = Server(self, "--clients", "1")
        client = self.park(server)
        r = subprocess.run([HEDDLE, "devices", "--gpu", f"shm:{server.path}"],
                           env=clean_environment(), capture_output=True, text=True)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("--clients", r.stderr)
        worker = self.only(server)["worker"]
        subprocess.run([HEDDLE, "serve", "--evict", str(worker), "--listen", f"shm:{server.path}"],
                       env=clean_environment(), check=True, stdout=subprocess.DEVNULL)
        until(lambda: not server.status()["clients"])
        self.assertEqual(self.come_back(client), "refused")

    def test_the_oldest_end_if_they_are_many(self):
        for option in ("--parked", "--parked-per-source"):
            server = Server(self, option, "2")
            clients = [self.park(server) for _ in range(4)]
            until(lambda: len(server.status()["clients"]) == 2)
            self.assertEqual([self.come_back(c) for c in clients],
                             ["refused", "refused", "returned", "returned"])
            self.assertIn(f"({option})", server.log())
            for c in clients:
                c.kill()
                c.wait()
            self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_they_make_room_for_users_that_have_fewer(self):
        server = Server(self, "--clients", "2", "--mode", "0666", "--allow-uid", "all")
        os.chmod(self.dir, 0o755)
        clients = [self.park(server) for _ in range(2)]
        devices = [HEDDLE, "devices", "--gpu", f"shm:{server.path}"]
        options = {"env": clean_environment(), "capture_output": True, "text": True}
        # Those that have as many have no claim.
        r = subprocess.run(devices, **options)
        self.assertIn("--clients", r.stderr)
        try:
            r = subprocess.run(devices, user=65534, group=65534, extra_groups=[], cwd="/",
                               **options)
        except PermissionError:
            self.skipTest("others cannot read the build folder")
        self.assertEqual(r.returncode, 0, r.stderr)
        server.until_logged("others need its place (--clients)")
        self.assertEqual([self.come_back(c) for c in clients], ["refused", "returned"])

    def test_parking_can_be_forbidden(self):
        server = Server(self, "--park-timeout", "0")
        r = subprocess.run([PARK, "stay"], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, env=clean_environment(HEDDLE_GPU=f"shm:{server.path}"))
        self.assertNotEqual(r.returncode, 0)
        self.assertNotIn("parked", r.stdout)


if __name__ == "__main__":
    unittest.main()
