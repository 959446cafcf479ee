#!/usr/bin/env python3
"""The heddle command from the outside: exit codes, messages, the environment it makes.

    HED_BUILD=build/dev run_cli.py [Case.test...]

What needs heddle's libraries is skipped, with the reason, in a build that has none.
"""

import json
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.environ.get("HED_BUILD", "")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEDDLE = os.path.join(BUILD, "bin", "heddle")
LIBDIR = os.path.join(os.path.realpath(BUILD), "lib", "heddle")
LIBRARIES = ["libheddle.so", "libcuda.so.1", "libnvidia-ml.so.1"]
COMMANDS = ["run", "serve", "trace", "cert", "devices", "doctor", "version", "help"]
TRACE_COMMANDS = ["show", "summary", "export"]

# Libraries with a sanitizer inside cannot be preloaded into programs without it.
SANITIZED = bool(os.environ.get("HED_SANITIZE"))
RUN = ["run", "--no-preload"] if SANITIZED else ["run"]

HAVE_LIBRARIES = all(os.path.exists(os.path.join(LIBDIR, name)) for name in LIBRARIES)
needs_libraries = unittest.skipUnless(HAVE_LIBRARIES, f"no libraries in {LIBDIR}")

PYTHON = sys.executable
FAKE_DRIVER = os.environ.get("HED_FAKE_DRIVER", "")


def clean_environment(**more):
    """Ours, without what would change heddle's mind, and with an empty home."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("HEDDLE_") and k not in ("LD_PRELOAD", "LD_LIBRARY_PATH",
                                                        "XDG_CONFIG_HOME", "NO_COLOR",
                                                        "CUDA_VISIBLE_DEVICES")}
    env["HOME"] = os.environ["HED_SCRATCH"]
    # A test may preload something into heddle itself.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env.update(more)
    return env


def options_in(text):
    """The long options that a help text names."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ["HED_SCRATCH"])

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def heddle(self, *args, env=None, cwd=None, **options):
        return subprocess.run([HEDDLE, *args], env=env or clean_environment(),
                              cwd=cwd or self.dir, capture_output=True, text=True, timeout=90,
                              stdin=subprocess.DEVNULL, **options)

    def expect(self, code, *args, says=None, **options):
        """Runs heddle; the exit code and a piece of what it says on standard error."""
        r = self.heddle(*args, **options)
        self.assertEqual(r.returncode, code, f"heddle {args}\n{r.stdout}{r.stderr}")
        if says is not None:
            self.assertIn(says, r.stderr)
        return r


class Words(Case):
    """The command line itself."""

    def test_no_command_is_wrong_and_shows_help(self):
        self.expect(2, says="usage: heddle COMMAND")

    def test_help_of_every_command_exits_0_and_fits_80_columns(self):
        outputs = [self.expect(0, *words).stdout
                   for c in COMMANDS for words in ((c, "--help"), ("help", c))]
        outputs += [self.expect(0, "trace", c, "--help").stdout for c in TRACE_COMMANDS]
        outputs += [self.expect(0, *words).stdout
                    for words in (("--help",), ("-h",), ("help",), ("help", "settings"),
                                  ("run", "-h"), ("devices", "-h"), ("doctor", "-h"))]
        for text in outputs:
            self.assertTrue(text)
            self.assertLessEqual(max(map(len, text.split("\n"))), 80, text)

    def test_version_has_a_short_and_a_long_form(self):
        short = self.expect(0, "--version").stdout
        self.assertRegex(short, r"^heddle \d+\.\d+\.\d+\n$")
        text = self.expect(0, "version").stdout
        self.assertTrue(text.startswith(short))
        self.assertRegex(text, r"calls +\d{3} of CUDA, \d{3} of NVML")

    def test_typos_are_answered_with_the_nearest_word(self):
        self.expect(2, "rnu", says='did you mean "run"?')
        self.expect(2, "devcies", says='did you mean "devices"?')
        self.expect(2, "run", "--trcae", "x", says="did you mean --trace?")
        self.expect(2, "frobnicate", says="see heddle --help")

    def test_unknown_options_are_refused_by_every_command(self):
        for command in ("run", "serve", "devices", "doctor", "version"):
            self.expect(2, command, "--frobnicate", says="--frobnicate")
        self.expect(2, "--frobnicate", says="--frobnicate")
        self.expect(2, "run", "-x", says="no option -x")

    def test_options_are_not_abbreviated(self):
        self.expect(2, "run", "--print", "true", says="no option --print")

    def test_values_are_asked_for_and_not_taken_where_there_are_none(self):
        self.expect(2, "run", "--gpu", says="--gpu needs a value")
        self.expect(2, "doctor", "--json=1", says="--json takes no value")

    def test_operands_are_refused_where_there_are_none(self):
        self.expect(2, "doctor", "me", says='takes no "me"')

    def test_control_characters_are_not_said(self):
        for words in (("a\033[2J\n",), ("run", "--set", "a\033]0;b\007=1", "true"),
                      ("run", "--", "./a\033[2J\n"), ("trace", "show", "a\033[2J\r")):
            text = self.heddle(*words).stderr
            self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]", words)
            self.assertEqual(text.count("\n"), 1)
            self.assertIn("a?", text)
        env = clean_environment(CUDA_VISIBLE_DEVICES="1\033[2J")
        self.assertNotIn("\033", self.heddle("doctor", env=env).stdout)

    def test_full_disk_is_not_success(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            r = subprocess.run([HEDDLE, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("cannot write", r.stderr)


class Settings(Case):
    """Settings are checked before anything is run."""

    def test_bad_values_are_refused_with_the_reason(self):
        for args, says in (
                (("--gpu", "nowhere"), "nowhere"),
                (("--trace-data", "1z"), "--trace-data: '1z'"),
                (("--trace-full", "maybe"), "maybe"),
                (("--layers", "trace,magic"), "magic"),
                (("--log", "shout"), "shout"),
                (("--set", "trace_buffer=1"), "trace_buffer"),
                (("--set", "nonsense=1"), "nonsense"),
                (("--set", "nonsense"), "KEY=VALUE"),
                (("--set", "=1"), "KEY=VALUE")):
            with self.subTest(args):
                self.expect(2, "run", *args, "--", "true", says=says)

    def test_unknown_variables_are_refused(self):
        env = clean_environment(HEDDLE_FOO="1")
        for command in (("run", "true"), ("devices",)):
            self.expect(2, *command, env=env, says="HEDDLE_FOO")
        r = self.expect(1, "doctor", env=env)
        self.assertIn("HEDDLE_FOO", r.stdout)

    def test_bad_variables_are_refused(self):
        self.expect(2, "run", "true", env=clean_environment(HEDDLE_TRACE_FULL="maybe"),
                    says="HEDDLE_TRACE_FULL")

    def test_an_option_replaces_a_bad_variable(self):
        env = clean_environment(HEDDLE_TRACE_FULL="maybe")
        r = self.heddle("run", "--trace-full", "drop", "--print-env", env=env)
        self.assertNotIn("HEDDLE_TRACE_FULL:", r.stderr)

    def test_a_settings_file_that_was_named_must_be_there_and_valid(self):
        self.expect(2, "run", "--config", "missing.conf", "true", says="missing.conf")
        self.write("bad.conf", "gpu = null\nwhat is this\n")
        self.expect(2, "run", "--config", "bad.conf", "true", says="bad.conf:2")

    @needs_libraries
    def test_a_settings_file_is_passed_on_by_its_full_path(self):
        path = self.write("good.conf", "# fine\ngpu = null\n")
        r = self.expect(0, "run", "--config", "good.conf", "--print-env")
        self.assertIn(f"export HEDDLE_CONFIG='{path}'\n", r.stdout)


@needs_libraries
class Program(Case):
    """heddle run becomes the program."""

    def test_exit_codes_are_the_programs(self):
        for code in (0, 1, 3, 125, 255):
            self.expect(code, *RUN, "--", "sh", "-c", f"exit {code}")

    def test_death_by_signal_is_the_programs(self):
        r = self.heddle(*RUN, "sh", "-c", "kill -9 $$")
        self.assertEqual(r.returncode, -signal.SIGKILL)

    def test_the_process_is_the_programs(self):
        with subprocess.Popen([HEDDLE, *RUN, "sh", "-c", "echo $$"], stdout=subprocess.PIPE,
                              env=clean_environment(), text=True) as p:
            self.assertEqual(int(p.stdout.read()), p.pid)

    def test_signals_reach_the_program(self):
        script = ("import signal, sys, time\n"
                  "def got(n, frame):\n    sys.exit(40 + n)\n"
                  "signal.signal(signal.SIGTERM, got)\n"
                  "print('ready', flush=True)\n"
                  "time.sleep(60)\n")
        with subprocess.Popen([HEDDLE, *RUN, "--", PYTHON, "-c", script],
                              stdout=subprocess.PIPE, env=clean_environment(), text=True) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(30), 40 + signal.SIGTERM)

    def test_arguments_and_standard_streams_are_untouched(self):
        words = ["--gpu", "a b", "", "*", "--", "-x", "\n"]
        script = "import sys; print(sys.argv[1:]); print(sys.stdin.read())"
        r = subprocess.run([HEDDLE, *RUN, PYTHON, "-c", script, *words], input="in",
                           env=clean_environment(), capture_output=True, text=True)
        self.assertEqual(r.stdout, f"{words}\nin\n")
        self.assertEqual(r.stderr, "")

    def test_options_end_at_the_program(self):
        r = self.expect(0, *RUN, "printf", "%s\\n", "--help")
        self.assertEqual(r.stdout, "--help\n")

    def test_missing_programs_are_127(self):
        self.expect(127, *RUN, "no-such-program", says="no-such-program: no such program")
        self.expect(127, *RUN, "./no-such-program", says="no such program")
        self.expect(127, *RUN, "", says="no such program")

    def test_programs_that_cannot_be_executed_are_126(self):
        self.write("text", "hello\n")
        self.expect(126, *RUN, "./text", says="not executable")
        self.expect(126, *RUN, self.dir, says="is a folder")
        self.write("orphan", "#!/no/such/interpreter\n", 0o755)
        self.expect(126, *RUN, "./orphan", says="interpreter")
        env = clean_environment(PATH=self.dir)
        self.expect(126, *RUN, "text", env=env, says="not executable")

    def test_which_program_is_asked(self):
        self.expect(2, "run", says="which program")
        self.expect(2, "run", "--gpu", "null", "--", says="which program")

    def test_path_is_searched_as_a_shell_does(self):
        self.write("tool", "#!/bin/sh\necho found $0\n", 0o755)
        env = clean_environment(PATH=f"/nonexistent::{os.environ['PATH']}")
        r = self.expect(0, *RUN, "tool", env=env)
        self.assertIn("found ./tool", r.stdout)

    def test_scripts_without_a_first_line_are_run_by_the_shell(self):
        self.write("plain", "echo plain\n", 0o755)
        self.assertEqual(self.expect(0, *RUN, "./plain").stdout, "plain\n")

    def test_null_says_once_that_nothing_is_executed(self):
        r = self.expect(0, *RUN, "--gpu", "null", "true")
        self.assertEqual(r.stderr.count("executes nothing"), 1)

    def test_static_programs_are_warned_about(self):
        code = {"aarch64": "a80b8052 00008052 010000d4",  # exit(0)
                "x86_64": "b83c000000 31ff 0f05"}.get(os.uname().machine)
        if not code:
            self.skipTest("no static program for this machine here")
        self.write("static", static_elf(bytes.fromhex(code)), 0o755)
        r = self.expect(0, *RUN, "./static", says="statically linked")
        self.assertEqual(r.stderr.count("\n"), 1)

    def test_dynamic_programs_are_not_warned_about(self):
        self.assertEqual(self.expect(0, *RUN, "true").stderr, "")

    def test_setuid_programs_are_warned_about(self):
        if os.getuid() != 0:
            self.skipTest("only root can make a setuid program of somebody else")
        path = self.write("other", "#!/bin/sh\nexit 0\n", 0o755)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
        self.expect(0, *RUN, path, says="setuid")


def static_elf(code):
    """The smallest program: one segment, no loader."""
    machine = {"aarch64": 183, "x86_64": 62}[os.uname().machine]
    base, head = 0x400000, 64 + 56
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    ehdr = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, base + head, 64, 0, 0, 64, 56, 1,
                               0, 0, 0)
    size = head + len(code)
    phdr = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x10000)
    return ehdr + phdr + code


@needs_libraries
class Environment(Case):
    """What the program finds in its environment."""

    SHOW = "import os, json; print(json.dumps(dict(os.environ)))"

    def environment(self, *args, **more):
        r = self.expect(0, *RUN, *args, "--", PYTHON, "-c", self.SHOW,
                        env=clean_environment(**more))
        return json.loads(r.stdout)

    def printed(self, *args, env=None):
        return self.expect(0, "run", *args, "--print-env", env=env).stdout

    def through_shell(self, text, before=""):
        """The environment after a shell has read the lines."""
        r = subprocess.run(["sh", "-c", before + 'eval "$1"; exec "$2" -c "$3"', "sh", text, PYTHON,
                            self.SHOW], env=clean_environment(), capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def test_print_env_needs_no_program_and_survives_a_shell(self):
        odd = "a 'b' \"c\" $HOME `id` \\ \n* end"
        path = self.path(odd)
        text = self.printed("--no-preload", "--trace", path, "--driver", odd, "--gpu", "null")
        env = self.through_shell(text)
        self.assertEqual(env["HEDDLE_TRACE"], path)
        self.assertEqual(env["HEDDLE_DRIVER"], path)
        self.assertEqual(env["HEDDLE_GPU"], "null")
        self.assertEqual(env["HEDDLE_LOG"], "warn")
        self.assertNotIn("HEDDLE_TRACE_OWNER", env)

    def test_paths_are_made_full(self):
        for words, name in ((["--driver", "x/libcuda.so.1"], "HEDDLE_DRIVER"),
                            (["--set", "driver=x/libcuda.so.1"], "HEDDLE_DRIVER"),
                            (["--set", "nvml=x/libcuda.so.1"], "HEDDLE_NVML")):
            env = self.through_shell(self.printed("--no-preload", *words))
            self.assertEqual(env[name], self.path("x/libcuda.so.1"))
        for name in ("HEDDLE_DRIVER", "HEDDLE_NVML", "HEDDLE_TRACE"):
            env = self.environment(**{name: "me.hed"})
            self.assertEqual(env[name], self.path("me.hed"))
        env = self.environment(HEDDLE_DRIVER="/x/y", HEDDLE_NVML="")
        self.assertEqual((env["HEDDLE_DRIVER"], env["HEDDLE_NVML"]), ("/x/y", ""))

    def test_print_env_removes_no_trace(self):
        self.write("t.hed", b"HEDTRACE" + bytes(8))
        self.printed("--trace", "t.hed")
        self.assertTrue(os.path.exists(self.path("t.hed")))

    def test_print_env_prints_changes_only(self):
        env = clean_environment(HEDDLE_GPU="null", HEDDLE_LOG="info")
        text = self.printed("--gpu", "null", env=env)
        self.assertNotIn("HEDDLE_GPU", text)
        self.assertNotIn("HEDDLE_LOG", text)
        self.assertIn("LD_LIBRARY_PATH", text)

    def test_libraries_come_first_and_what_was_there_is_kept(self):
        cuda, nvml = (os.path.join(LIBDIR, name) for name in LIBRARIES[1:])
        text = self.printed(env=clean_environment(LD_PRELOAD="libm.so.6 /x/y.so",
                                                  LD_LIBRARY_PATH="/one::/two"))
        self.assertIn(f"export LD_PRELOAD='{cuda}:{nvml}:libm.so.6:/x/y.so'\n", text)
        self.assertIn(f"export LD_LIBRARY_PATH='{LIBDIR}:/one::/two'\n", text)

    def test_running_heddle_in_heddle_adds_nothing_twice(self):
        cuda, nvml = (os.path.join(LIBDIR, name) for name in LIBRARIES[1:])
        env = clean_environment(LD_LIBRARY_PATH=f"/one:{LIBDIR}")
        text = self.printed(env=env)
        self.assertIn(f"export LD_LIBRARY_PATH='{LIBDIR}:/one'\n", text)
        if not SANITIZED:
            env = self.environment("--", HEDDLE, "run")
            self.assertEqual(env["LD_PRELOAD"], f"{cuda}:{nvml}")

    def test_no_preload_leaves_ld_preload_alone(self):
        text = self.printed("--no-preload")
        self.assertNotIn("LD_PRELOAD", text)
        self.assertIn("LD_LIBRARY_PATH", text)

    @unittest.skipIf(SANITIZED, "libraries with a sanitizer cannot be preloaded")
    def test_the_program_has_the_libraries_in_it(self):
        show = "print(open('/proc/self/maps').read())"
        r = self.expect(0, "run", PYTHON, "-c", show)
        for name in LIBRARIES:
            self.assertIn(os.path.join(LIBDIR, name), r.stdout)

    def test_options_become_variables(self):
        env = self.environment("--gpu=null", "--trace-full", "drop", "--trace-data", "4k", "--set",
                               "trace_buffer=128k", "--fault", "cuMemAlloc_v2:1:2", "--log=debug")
        self.assertEqual(env["HEDDLE_GPU"], "null")
        self.assertEqual(env["HEDDLE_TRACE_FULL"], "drop")
        self.assertEqual(env["HEDDLE_TRACE_DATA"], "4k")
        self.assertEqual(env["HEDDLE_TRACE_BUFFER"], "128k")
        self.assertEqual(env["HEDDLE_FAULT"], "cuMemAlloc_v2:1:2")
        self.assertEqual(env["HEDDLE_LOG"], "debug")

    def test_log_is_warn_unless_somebody_said_otherwise(self):
        self.assertEqual(self.environment()["HEDDLE_LOG"], "warn")
        self.assertEqual(self.environment(HEDDLE_LOG="error")["HEDDLE_LOG"], "error")
        self.assertEqual(self.environment(HEDDLE_LOG="")["HEDDLE_LOG"], "")
        conf = self.write("log.conf", "log = info\n")
        self.assertNotIn("HEDDLE_LOG", self.environment("--config", conf))


@needs_libraries
class Trace(Case):
    """The place of the trace is looked at before the program runs."""

    def test_the_path_is_absolute_and_the_owner_is_the_program(self):
        script = "echo $HEDDLE_TRACE $HEDDLE_TRACE_OWNER $$"
        r = self.expect(0, *RUN, "--trace", "t.hed", "sh", "-c", script)
        path, owner, pid = r.stdout.split()
        self.assertEqual(path, self.path("t.hed"))
        self.assertEqual(owner, pid)

    def test_an_old_trace_is_removed(self):
        for text in (b"", b"HEDTRACE" + bytes(100)):
            self.write("t.hed", text)
            self.expect(0, *RUN, "--trace", "t.hed", "sh", "-c", "test ! -e t.hed")

    def test_another_file_is_not_replaced(self):
        self.write("thesis.tex", "ten years of work")
        self.expect(2, *RUN, "--trace", "thesis.tex", "true", says="not a trace")
        self.expect(2, *RUN, "--trace", ".", "true", says="not a trace")
        self.expect(2, *RUN, "--trace", "/dev/null", "true", says="not a trace")
        with open(self.path("thesis.tex")) as f:
            self.assertEqual(f.read(), "ten years of work")

    def test_a_trace_survives_a_program_that_is_not_there(self):
        self.write("t.hed", b"HEDTRACE" + bytes(8))
        self.expect(127, *RUN, "--trace", "t.hed", "no-such-program")
        self.assertTrue(os.path.exists(self.path("t.hed")))

    def test_a_folder_that_cannot_be_written_is_refused(self):
        self.expect(2, *RUN, "--trace", "missing/t.hed", "true", says="cannot write in")
        self.expect(2, *RUN, "--trace", "/proc/t.hed", "true", says="cannot write in /proc")

    def test_a_folder_without_permission_is_refused(self):
        os.mkdir(self.path("closed"), 0o555)
        options = {}
        if os.getuid() == 0:
            # Root may write anywhere; be somebody else, if they can reach this folder.
            options = {"user": 65534, "group": 65534}
            try:
                subprocess.run([HEDDLE, "--version"], capture_output=True, cwd="/", check=True,
                               **options)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("the build folder is closed to other users")
        self.expect(2, *RUN, "--trace", "closed/t.hed", "true", says="Permission denied",
                    **options)

    @unittest.skipIf("thread" in os.environ.get("HED_SANITIZE", ""),
                     "ThreadSanitizer maps files larger than the limit")
    def test_a_disk_without_room_is_refused(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
        self.expect(2, *RUN, "--trace", "t.hed", "true", says="cannot write in", preexec_fn=limit,
                    restore_signals=False)
        self.assertEqual(os.listdir(self.dir), [])

    def test_nothing_is_left_in_the_folder(self):
        self.expect(0, *RUN, "--trace", "t.hed", "true")
        self.assertLessEqual(set(os.listdir(self.dir)), {"t.hed"})


class Broken(Case):
    """heddle without its libraries, or with wrong ones."""

    def install(self):
        os.mkdir(self.path("bin"))
        os.makedirs(self.path("lib", "heddle"))
        shutil.copy(HEDDLE, self.path("bin", "heddle"))

    def run_installed(self, *args):
        return subprocess.run([self.path("bin", "heddle"), *args], env=clean_environment(),
                              capture_output=True, text=True, timeout=90)

    def test_missing_libraries_are_named(self):
        self.install()
        r = self.run_installed("run", "true")
        self.assertEqual(r.returncode, 125)
        self.assertIn("no libheddle.so", r.stderr)
        self.assertEqual(self.run_installed("devices").returncode, 1)
        r = self.run_installed("doctor")
        self.assertEqual(r.returncode, 1)
        self.assertIn("FAIL  libraries", r.stdout)

    def test_libraries_of_another_machine_are_refused(self):
        self.install()
        head = bytearray(static_elf(b""))
        struct.pack_into("<H", head, 18, 21)  # PowerPC
        for name in LIBRARIES:
            self.write(os.path.join("lib", "heddle", name), bytes(head))
        r = self.run_installed("run", "true")
        self.assertEqual(r.returncode, 125)
        self.assertIn("not for this machine", r.stderr)

    def test_files_that_are_no_libraries_are_refused(self):
        self.install()
        for name in LIBRARIES:
            self.write(os.path.join("lib", "heddle", name), "hello")
        r = self.run_installed("run", "true")
        self.assertEqual(r.returncode, 125)
        self.assertIn("is not a library", r.stderr)


    @needs_libraries
    def test_damaged_libraries_do_no_harm(self):
        self.install()
        with open(os.path.join(LIBDIR, LIBRARIES[1]), "rb") as f:
            whole = f.read()
        for name in LIBRARIES:
            self.write(os.path.join("lib", "heddle", name), whole)
        chance = random.Random(1)
        for _ in range(100):
            broken = bytearray(whole[:chance.choice((len(whole), 4096, 1000, 100))])
            for _ in range(8):
                # The header and the segments' table are where damage matters.
                broken[chance.randrange(min(len(broken), 600))] = chance.randrange(256)
            self.write(os.path.join("lib", "heddle", LIBRARIES[2]), bytes(broken))
            self.assertIn(self.run_installed("run", "--print-env").returncode, (0, 125))


class Doctor(Case):
    """The doctor never hangs, never fails for want of a GPU, and says what to do."""

    @needs_libraries
    def test_a_machine_without_gpu_is_a_warning(self):
        if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/dxg"):
            self.skipTest("there is a GPU here")
        r = self.expect(0, "doctor")
        self.assertRegex(r.stdout, "(warn|ok  )  GPU          no GPU here")
        self.assertNotIn("FAIL", r.stdout)
        # A path cannot be broken, wherever the tree lies.
        wide = [line for line in r.stdout.split("\n") if len(line) > 80 and " " in line.strip()]
        self.assertEqual(wide, [])

    def test_json_says_the_same(self):
        r = self.heddle("doctor", "--json")
        report = json.loads(r.stdout)
        levels = {f["level"] for f in report["findings"]}
        self.assertEqual(report["failed"], "FAIL" in levels)
        self.assertEqual(r.returncode, int(report["failed"]))
        for finding in report["findings"]:
            self.assertEqual(set(finding), {"level", "name", "text", "hint"})

    @needs_libraries
    def test_our_libraries_are_well(self):
        findings = json.loads(self.heddle("doctor", "--json").stdout)["findings"]
        ours = [f for f in findings if f["name"] == "libraries"]
        self.assertEqual([f["level"] for f in ours], ["ok"], ours)

    @needs_libraries
    def test_heddle_is_not_taken_for_the_driver(self):
        env = clean_environment(HEDDLE_DRIVER=os.path.join(LIBDIR, "libcuda.so.1"))
        r = self.expect(1, "doctor", env=env)
        self.assertIn("heddle itself", " ".join(r.stdout.split()))

    def test_a_driver_that_is_not_there_fails(self):
        r = self.expect(1, "doctor", env=clean_environment(HEDDLE_DRIVER="/no/libcuda.so.1"))
        self.assertIn("is not there", " ".join(r.stdout.split()))

    def test_a_driver_may_be_named_from_here(self):
        self.write("libcuda.so.1", "not a library")
        text = " ".join(self.heddle("doctor", env=clean_environment(HEDDLE_DRIVER="libcuda.so.1"))
                        .stdout.split())
        self.assertIn("the setting `driver` is " + self.path("libcuda.so.1"), text)

    def fake(self, how):
        """What the doctor says of a driver that behaves so."""
        if not os.path.exists(FAKE_DRIVER):
            self.skipTest("no fake driver: set HED_FAKE_DRIVER")
        r = self.heddle("doctor", "--json",
                        env=clean_environment(HEDDLE_DRIVER=FAKE_DRIVER, FAKE_DRIVER=how))
        found = [f for f in json.loads(r.stdout)["findings"] if f["name"] == "driver"]
        self.assertEqual(len(found), 1, r.stdout)
        self.assertNotEqual(found[0]["level"], "ok")
        return found[0]["text"]

    def test_a_driver_that_fails_is_named_with_its_error(self):
        self.assertIn("cuInit: CUDA_ERROR_NO_DEVICE (100)", self.fake(""))
        self.assertIn("cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", self.fake("mismatch"))
        self.assertIn("cuInit: unknown error (12345)", self.fake("strange"))

    def test_a_driver_that_crashes_is_survived(self):
        self.assertIn("cuInit crashed: Aborted", self.fake("crash"))

    def test_a_driver_that_ends_the_process_is_survived(self):
        self.assertIn("cuInit ended the process", self.fake("exit"))

    def test_a_driver_that_prints_does_not_spoil_the_output(self):
        self.assertIn("CUDA_ERROR_NO_DEVICE", self.fake("print"))

    def test_a_driver_that_hangs_is_given_up(self):
        self.assertIn("cuInit did not return within", self.fake("hang"))

    def test_odd_loader_variables_are_noted(self):
        env = clean_environment(LD_LIBRARY_PATH="/usr/lib:")
        self.assertIn("empty entry", " ".join(self.heddle("doctor", env=env).stdout.split()))

    @needs_libraries
    def test_heddle_in_the_shell_is_noted(self):
        env = clean_environment(LD_LIBRARY_PATH=LIBDIR)
        self.assertIn("heddle's own folder",
                      " ".join(self.heddle("doctor", env=env).stdout.split()))

    def test_hidden_devices_are_noted(self):
        r = self.heddle("doctor", env=clean_environment(CUDA_VISIBLE_DEVICES="-1"))
        self.assertIn("hides all devices", " ".join(r.stdout.split()))

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn("\033", self.heddle("doctor").stdout)


@needs_libraries
class Devices(Case):
    """The devices as programs would see them."""

    def test_null_has_devices(self):
        r = self.expect(0, "devices", "--gpu", "null")
        self.assertRegex(r.stdout, r"^CUDA \d+\.\d+, \d+ devices? \(--gpu null\)\n")
        self.assertLessEqual(max(map(len, r.stdout.split("\n"))), 80, r.stdout)

    def test_json_can_be_read(self):
        report = json.loads(self.expect(0, "devices", "--gpu", "null", "--json").stdout)
        self.assertEqual(report["gpu"], "null")
        self.assertGreater(len(report["devices"]), 0)
        for i, device in enumerate(report["devices"]):
            self.assertEqual(device["index"], i)
            self.assertRegex(device["uuid"], r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertRegex(device["compute_capability"], r"^\d+\.\d+$")
            self.assertGreater(device["memory_bytes"], 0)

    def test_no_driver_is_told_in_words(self):
        env = clean_environment(HEDDLE_DRIVER="/no/libcuda.so.1")
        r = self.expect(1, "devices", env=env, says="CUDA_ERROR")
        self.assertIn("heddle doctor", r.stderr)
        self.assertEqual(r.stderr.count("/no/libcuda.so.1 not found"), 1)
        self.assertNotIn("nvidia-", r.stderr)
        report = json.loads(self.expect(1, "devices", "--json", env=env).stdout)
        self.assertTrue(report["error"]["name"].startswith("CUDA_ERROR"))
        self.assertIn("not found", report["error"]["hint"])

    def test_no_driver_anywhere_is_told_once(self):
        r = self.heddle("devices", "--gpu", "gpu")
        if "was not found" not in " ".join(r.stderr.split()):
            self.skipTest("there is a driver here")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stderr.count("libcuda.so.1"), 1, r.stderr)
        self.assertNotIn("No GPU is visible", r.stderr)

    def test_a_driver_may_be_named_from_here(self):
        self.write("libcuda.so.1", "not a library")
        self.expect(1, "devices", env=clean_environment(HEDDLE_DRIVER="libcuda.so.1"),
                    says=self.path("libcuda.so.1"))

    def test_no_trace_is_written(self):
        self.write("t.hed", "mine")
        self.expect(0, "devices", "--gpu", "null",
                    env=clean_environment(HEDDLE_TRACE=self.path("t.hed")))
        with open(self.path("t.hed")) as f:
            self.assertEqual(f.read(), "mine")

    def test_bad_settings_are_refused(self):
        self.expect(2, "devices", "--gpu", "nowhere", says="nowhere")


@unittest.skipUnless(shutil.which("bash"), "no bash")
class Completion(Case):
    """What the tab key gives."""

    SCRIPT = os.path.join(SOURCE, "share", "completion", "heddle.bash")

    def complete(self, *words):
        """COMPREPLY for the last of the words, in bash's own splitting."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
                  '_heddle 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
        env = clean_environment(PATH=os.path.join(BUILD, "bin") + ":" + os.environ["PATH"])
        r = subprocess.run(["bash", "--norc", "-c", script, "bash", self.SCRIPT, *words],
                           env=env, cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return [line for line in r.stdout.split("\n") if line]

    def test_commands(self):
        self.assertEqual(self.complete("heddle", "d"), ["devices", "doctor"])
        self.assertIn("run", self.complete("heddle", ""))

    def test_every_option_is_known(self):
        for words in (["run"], ["serve"], ["devices"], ["doctor"],
                      *(["trace", c] for c in TRACE_COMMANDS)):
            listed = options_in(self.expect(0, *words, "--help").stdout) | {"--help"}
            self.assertEqual(listed, set(self.complete("heddle", *words, "--")), words)

    def test_values(self):
        self.assertEqual(self.complete("heddle", "run", "--gpu", ""),
                         ["auto", "gpu", "cpu", "null"])
        self.assertEqual(self.complete("heddle", "run", "--gpu", "=", "n"), ["null"])
        self.assertEqual(self.complete("heddle", "devices", "--gpu", "n"), ["null"])
        self.assertEqual(self.complete("heddle", "trace", "summary", "--sort", "c"), ["count"])
        self.assertEqual(self.complete("heddle", "run", "--trace-full", "d"), ["drop"])
        self.assertIn("trace_buffer=", self.complete("heddle", "run", "--set", "trace_b"))

    def test_files_for_traces(self):
        self.write("my trace.hed", "")
        self.assertEqual(self.complete("heddle", "run", "--trace", "my"), ["my trace.hed"])
        self.assertIn("my trace.hed", self.complete("heddle", "trace", "show", "my"))

    def test_programs_and_then_their_files(self):
        self.write("data.bin", "")
        self.assertIn("python3", self.complete("heddle", "run", "--gpu", "null", "--", "python3"))
        self.assertEqual(self.complete("heddle", "run", "cat", "da"), ["data.bin"])
        self.assertEqual(self.complete("heddle", "run", "--", "cat", "--gpu", "da"), ["data.bin"])

    def read_until(self, fd, wanted):
        seen, end = b"", time.monotonic() + 20
        while wanted not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 4096)
        self.assertIn(wanted, seen)

    def test_a_real_terminal(self):
        try:
            pid, fd = pty.fork()
        except OSError as e:
            self.skipTest(f"no terminal to be had: {e}")
        if pid == 0:
            os.execvpe("bash", ["bash", "--norc", "-i"],
                       clean_environment(TERM="dumb", PS1="$ ", HISTFILE=""))
        try:
            os.write(fd, f"source '{self.SCRIPT}'; echo rea''dy\n".encode())
            self.read_until(fd, b"ready")
            os.write(fd, b"heddle devi\t--js\t")
            self.read_until(fd, b"heddle devices --json ")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)


class Manual(Case):
    """The manual pages are sound and know every option."""

    def pages(self):
        folder = os.path.join(SOURCE, "docs", "man")
        pages = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                pages[name] = f.read()
        return pages

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_no_page_has_warnings(self):
        for name in self.pages():
            r = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-b", "-z", "-rLL=78n",
                                os.path.join(SOURCE, "docs", "man", name)],
                               capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stderr), (0, ""), name)

    def test_every_option_is_described(self):
        pages = self.pages()
        for words in (["run"], ["serve"], ["devices"], ["doctor"],
                      *(["trace", c] for c in TRACE_COMMANDS)):
            page = pages[f"heddle-{words[0]}.1"].replace("\\-", "-")
            for option in options_in(self.expect(0, *words, "--help").stdout):
                self.assertIn(option, page, words)

    def test_ranges_of_sizes_are_described(self):
        page = self.pages()["heddle.conf.5"].split(".SH SETTINGS")[1]
        for key in ("trace_buffer", "trace_data"):
            said = self.expect(2, "run", "--set", f"{key}=1G", "true").stderr
            low, high = map(int, re.search(r"between (\d+) and (\d+)", said).groups())
            text = page.split(f"\n.B {key}\n")[1].split("\n.TP")[0]
            self.assertRegex(text, rf"\b{high >> 20}M\b")
            if low:
                self.assertRegex(text, rf"\b{low >> 10}k\b")

    def test_the_log_of_run_is_described(self):
        self.assertIn("HEDDLE_LOG=warn", self.pages()["heddle-run.1"])

    def test_every_setting_is_described(self):
        page = self.pages()["heddle.conf.5"].replace("\\-", "-")
        for line in self.expect(0, "help", "settings").stdout.split("\n")[3:]:
            if line.startswith("  ") and not line.startswith("   "):
                self.assertIn("\n.B " + line.split()[0] + "\n", page)


if __name__ == "__main__":
    if not os.path.exists(HEDDLE):
        print(f"skipped: no {HEDDLE}; set HED_BUILD to a build folder")
        sys.exit(77)
    # By hand; CTest gives each run an empty folder of its own.
    os.environ.setdefault("HED_SCRATCH", tempfile.mkdtemp())
    os.chmod(os.environ["HED_SCRATCH"], stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP |
             stat.S_IROTH | stat.S_IXOTH)
    unittest.main(verbosity=2)
