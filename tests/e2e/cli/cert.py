#!/usr/bin/env python3
"""`heddle cert` from the outside: the files that it writes and their modes, what it refuses and
prints; and OpenSSL's own command accepts its files.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch cert.py [Case.test...]
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from harness.patience import PATIENCE  # noqa: E402

HEDDLE = os.path.abspath(os.path.join(os.environ.get("HED_BUILD", ""), "bin", "heddle"))
OPENSSL = shutil.which("openssl")


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("HED_SCRATCH"))

    def cert(self, *words, code=0, says=None):
        p = subprocess.run([HEDDLE, "cert", *words], capture_output=True, text=True,
                           timeout=PATIENCE, cwd=self.dir, stdin=subprocess.DEVNULL)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        if says:
            self.assertIn(says, p.stderr)
        return p.stdout

    def openssl(self, *words, code=0):
        p = subprocess.run([OPENSSL, *words], capture_output=True, text=True,
                           timeout=PATIENCE, cwd=self.dir, stdin=subprocess.DEVNULL)
        self.assertEqual(p.returncode, code, f"{words}\n{p.stdout}\n{p.stderr}")
        return p.stdout

    def mode(self, name):
        return stat.S_IMODE(os.stat(os.path.join(self.dir, name)).st_mode)

    def all_three(self):
        self.cert("ca", "c")
        self.cert("server", "c", "--host", "gpu1.example,10.0.0.5,::1")
        self.cert("client", "c", "--name", "alice")


class Make(Case):
    def test_files_are_where_it_says_and_keys_are_secret(self):
        said = self.cert("ca", "c")
        self.assertIn("wrote c/ca.pem\nwrote c/ca.key (secret)\n", said)
        said = self.cert("server", "c", "--host=gpu1.example,10.0.0.5")
        self.assertIn("wrote c/server-gpu1.example.pem\n", said)
        self.assertIn("c/ca.pem to the server", said)
        said = self.cert("client", "--name", "alice", "c")
        self.assertIn("wrote c/client-alice.pem\n", said)
        self.assertIn("tls_cert = .../client-alice.pem\n", said)
        self.assertEqual(sorted(os.listdir(os.path.join(self.dir, "c"))),
                         ["ca.key", "ca.pem", "client-alice.key", "client-alice.pem",
                          "server-gpu1.example.key", "server-gpu1.example.pem"])
        for name in ("ca", "client-alice", "server-gpu1.example"):
            self.assertEqual(self.mode(f"c/{name}.key"), 0o600)
            self.assertEqual(self.mode(f"c/{name}.pem"), 0o644)
        self.assertEqual(self.mode("c"), 0o700)

    def test_nothing_is_replaced_unless_forced(self):
        self.all_three()
        before = {p.name: p.read_bytes() for p in Path(self.dir, "c").iterdir()}
        for words in (("ca", "c"), ("server", "c", "--host", "gpu1.example"),
                      ("client", "c", "--name", "alice")):
            self.cert(*words, code=1, says="--force replaces it")
        self.assertEqual(before, {p.name: p.read_bytes() for p in Path(self.dir, "c").iterdir()})
        self.cert("client", "c", "--name", "alice", "--force")
        changed = [n for n, b in before.items() if Path(self.dir, "c", n).read_bytes() != b]
        self.assertEqual(sorted(changed), ["client-alice.key", "client-alice.pem"])

    def test_nonsense_is_refused(self):
        self.cert("client", "c", "--name", "alice", code=1, says="heddle cert ca c")
        self.cert("ca", "c")
        self.cert("server", "c", code=2, says="no --host given")
        self.cert("client", "c", code=2, says="no --name given")
        self.cert("client", "--name", "x", code=2, says="no folder given")
        self.cert("ca", "a", "b", code=2, says="one folder")
        self.cert("ca", "d", "--days", "0", code=2, says="is not a number from 1 to 7300")
        self.cert("ca", "d", "--days", "x", code=2, says="is not a number")
        self.cert("ca", "d", "--host", "x", code=2, says="cert ca: there is no option '--host'")
        self.cert("client", "c", "--name", "../../x", code=2, says="is not a name")
        self.cert("server", "c", "--host", "a,b c", code=2, says="'b c' is not the name")
        self.cert("ca", "no/such/folder", code=1, says="No such file or directory")
        self.cert("sever", "c", code=2, says="did you mean 'server'?")
        self.cert("show", code=2, says="no file given")
        self.assertFalse(os.path.exists(os.path.join(self.dir, "d")))

    def test_a_key_of_another_authority_is_noticed(self):
        self.cert("ca", "c")
        self.cert("ca", "d")
        shutil.copy(os.path.join(self.dir, "d/ca.key"), os.path.join(self.dir, "c/ca.key"))
        self.cert("client", "c", "--name", "x", code=1, says="not the key of the CA")

    def test_help_fits_and_names_every_option(self):
        page = (Path(__file__).resolve().parents[3] / "docs/man/heddle-cert.1").read_text()
        for words in ((), ("ca",), ("server",), ("client",), ("show",)):
            text = self.cert(*words, "--help")
            self.assertLessEqual(max(map(len, text.split("\n"))), 80, text)
            for word in text.split():
                if word.startswith("--"):
                    self.assertIn(word.rstrip(",;`").replace("-", "\\-"), page)


class Show(Case):
    def test_show_describes_certificates(self):
        self.all_three()
        text = self.cert("show", "c/ca.pem", "c/server-gpu1.example.pem", "c/client-alice.pem")
        self.assertIn("subject      CN=heddle CA\n", text)
        self.assertIn("hosts        gpu1.example,10.0.0.5,::1\n", text)
        self.assertIn("use          CA\n", text)
        self.assertIn("use          server\n", text)
        self.assertIn("use          client\n", text)
        self.assertRegex(text, r"valid until  \d{4}-\d\d-\d\d [\d:]{8} UTC \(36[45] days left")

    def test_other_files_are_refused_and_the_rest_is_shown(self):
        self.all_three()
        text = self.cert("show", "c/ca.key", "c/ca.pem", code=1, says="not a certificate")
        self.assertIn("CN=heddle CA", text)
        self.cert("show", "c", code=1, says="not a certificate")
        self.cert("show", "/dev/zero", code=1, says="not a certificate")
        self.cert("show", "none", code=1, says="No such file")


@unittest.skipUnless(OPENSSL, "no openssl command")
class OpenSsl(Case):
    def test_openssl_accepts_the_files(self):
        self.all_three()
        verify = ("verify", "-CAfile", "c/ca.pem", "-x509_strict")
        self.openssl(*verify, "-purpose", "sslserver", "-verify_hostname", "gpu1.example",
                     "c/server-gpu1.example.pem")
        self.openssl(*verify, "-purpose", "sslserver", "-verify_ip", "10.0.0.5",
                     "c/server-gpu1.example.pem")
        self.openssl(*verify, "-purpose", "sslclient", "c/client-alice.pem")
        self.openssl(*verify, "-purpose", "sslserver", "c/client-alice.pem", code=2)
        self.openssl(*verify, "-purpose", "sslclient", "c/server-gpu1.example.pem", code=2)
        self.assertIn("P-256", self.openssl("pkey", "-in", "c/ca.key", "-noout", "-text"))


if __name__ == "__main__":
    if not os.path.exists(HEDDLE):
        print(f"skipped: no {HEDDLE}; set HED_BUILD to a build folder")
        sys.exit(77)
    os.environ.setdefault("HED_SCRATCH", tempfile.mkdtemp())
    unittest.main(verbosity=2)
