#!/usr/bin/env python3
"""The heddle command from the outside: options and messages, and how `heddle run` runs a program.

    HED_BUILD=build/dev run.py [Case.test...]

In a build without heddle's libraries, tests that need them are skipped, with the reason.
"""

import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from case import (
    COMMANDS, HEDDLE, LIBDIR, LIBRARIES, PATIENCE, PYTHON, RUN, SANITIZED, Case,
    clean_environment, needs_libraries)

NODES = os.path.join(LIBDIR, "libheddle-nodes.so")


class Words(Case):
    """The command line itself."""

    def test_no_command_is_wrong_and_shows_help(self):
        self.expect(2, says="usage: heddle COMMAND")

    def test_help_of_every_command_exits_0_and_fits_80_columns(self):
        outputs = [self.expect(0, *words).stdout
                   for c in COMMANDS for words in ((c, "--help"), ("help", c))]
        outputs += [self.expect(0, *words, "--help").stdout for words in self.subcommands()]
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

    def test_typing_errors_are_answered_with_the_nearest_word(self):
        self.expect(2, "rnu", says="did you mean 'run'?")
        self.expect(2, "devcies", says="did you mean 'devices'?")
        self.expect(2, "run", "--trcae", "x", says="did you mean --trace?")
        self.expect(2, "frobnicate", says="see heddle --help")

    def test_a_message_is_written_at_once(self):
        # Each write is a packet.
        for words in (("frobnicate",), ("run", "--", "./a\033[2J"), ("sched",), ()):
            ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours:
                with its:
                    subprocess.run([HEDDLE, *words], stderr=its, stdout=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, env=clean_environment(), cwd=self.dir,
                                   timeout=PATIENCE)
                packets = list(iter(lambda: ours.recv(65536), b""))
            self.assertTrue(packets)
            for p in packets:
                self.assertTrue(p.endswith(b"\n"), packets)

    def test_unknown_options_are_refused_by_every_command(self):
        for command in ("run", "serve", "sched", "devices", "doctor", "version"):
            self.expect(2, command, "--frobnicate", says="--frobnicate")
        self.expect(2, "--frobnicate", says="--frobnicate")
        self.expect(2, "run", "-x", says="there is no option '-x'")

    def test_options_are_not_abbreviated(self):
        self.expect(2, "run", "--print", "true", says="there is no option '--print'")

    def test_missing_and_superfluous_values_are_refused(self):
        self.expect(2, "run", "--gpu", says="--gpu needs a value")
        self.expect(2, "doctor", "--json=1", says="--json takes no value")

    def test_superfluous_operands_are_refused(self):
        self.expect(2, "doctor", "me", says="unexpected 'me'")

    def test_control_characters_are_not_printed(self):
        for words in (("a\033[2J\n",), ("run", "--set", "a\033]0;b\007=1", "true"),
                      ("run", "--", "./a\033[2J\n"), ("trace", "show", "a\033[2J\r")):
            text = self.heddle(*words).stderr
            self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]", words)
            self.assertEqual(text.count("\n"), 1)
            self.assertIn("a?", text)
        env = clean_environment(CUDA_VISIBLE_DEVICES="1\033[2J")
        self.assertNotIn("\033", self.heddle("doctor", env=env).stdout)

    def test_a_full_disk_is_a_failure(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            r = subprocess.run([HEDDLE, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("cannot write", r.stderr)


class Settings(Case):
    """Settings are checked before anything is run."""

    def test_profiles_are_found_when_heddle_is_found_by_path(self):
        env = clean_environment(PATH=os.path.dirname(os.path.realpath(HEDDLE)))
        r = subprocess.run("heddle run --gpu cpu:h1000 true", shell=True, cwd=self.dir, env=env,
                           executable="/bin/sh", capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(r.returncode, 2)
        self.assertIn("there is no device 'h1000'", r.stderr)

    def test_bad_values_are_refused_with_the_reason(self):
        for args, says in (
                (("--gpu", "nowhere"), "nowhere"),
                (("--gpu", "cpu:h1000"), "run: --gpu: there is no device 'h1000'; choose from a"),
                (("--gpu", "cpu:t4,h1000x2"), "--gpu: there is no device 'h1000'"),
                (("--gpu", "cpu:h100x65"), "--gpu: 'h100x65': the number of devices must be"),
                (("--gpu", "cpu:h100x64,t4"), "--gpu: more than 64 devices"),
                (("--gpu", "cpu:./none.json"), "--gpu: there is no device profile './none.json'"),
                (("--gpu", "vm:a/b"), "the name of a guest has up to"),
                (("--trace-data", "1z"), "--trace-data: '1z'"),
                (("--trace-full", "maybe"), "maybe"),
                (("--layers", "trace,magic"), "magic"),
                (("--log", "shout"), "shout"),
                (("--set", "trace_buffer=1"), "trace_buffer"),
                (("--sched", "prio=top"), "--sched: prio=top: there is no such priority"),
                (("--set", "sched=prio=top"), "--set: sched: prio=top: there is no such priority"),
                (("--set", "sched=queue=4"), "stream, queue and queues need mode=record"),
                (("--fault", "cuNothing:1:2"), "run: --fault: there is no call 'cuNothing'; use"),
                (("--fault", "cuInit"), "run: --fault: 'cuInit' is not NAME:N:ERROR, such as"),
                (("--fault", "cuInit:0:2"), "run: --fault: '0' is neither * nor a number from 1"),
                (("--fault", "cuInit:1:2,nvmlInit_v2:*:CUDA_ERROR"),
                 "run: --fault: 'CUDA_ERROR' is not the name or number of an error"),
                (("--set", "fault=cuInit:1:0"), "--set: fault: '0' is not the name or number of"),
                (("--set", "mem_group=a"), "run: mem_group: the group 'a' has no limit; set mem"),
                (("--mem", "1G", "--set", "mem_group=a/b"), "is not a name of up to 94"),
                (("--mem", "1G", "--set", "mem_group=" + "a" * 95), "is not a name of up to 94"),
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

    def test_bad_settings_of_layers_are_refused_before_the_program_runs(self):
        self.write("bad.conf", "sched = policy=magic\n")
        self.write("group.conf", "mem_group = a\n")
        for command in (("run", "true"), ("devices",)):
            self.expect(2, *command, env=clean_environment(HEDDLE_SCHED="prio=top"),
                        says="HEDDLE_SCHED: sched: prio=top: there is no such priority")
            self.expect(2, *command, env=clean_environment(HEDDLE_FAULT="cuNothing:1:2"),
                        says="HEDDLE_FAULT: fault: there is no call 'cuNothing'; use its full")
            self.expect(2, *command, env=clean_environment(HEDDLE_CONFIG=self.path("bad.conf")),
                        says="the settings file: sched: policy=magic: there is no such policy")
            for env in ({"HEDDLE_MEM_GROUP": "a"}, {"HEDDLE_CONFIG": self.path("group.conf")}):
                self.expect(2, *command, env=clean_environment(**env),
                            says="mem_group: the group 'a' has no limit")
        r = self.expect(1, "doctor", env=clean_environment(HEDDLE_SCHED="prio=top"))
        self.assertIn("HEDDLE_SCHED", r.stdout)

    @needs_libraries
    def test_good_settings_of_layers_are_accepted(self):
        for words in (("--set", "sched=on"), ("--sched", ""), ("--fault", ""),
                      ("--fault", "cuInit:*:CUDA_ERROR_UNKNOWN, nvmlInit_v2:2:9"),
                      ("--mem", "1G", "--set", "mem_group=a.b-9")):
            self.expect(0, "run", *words, "--print-env")

    @needs_libraries
    def test_a_limit_of_memory_is_named_when_it_is_reached(self):
        code = ("import ctypes; c = ctypes.CDLL('libcuda.so.1'); x = ctypes.c_void_p()\n"
                "c.cuInit(0); c.cuDevicePrimaryCtxRetain(ctypes.byref(x), 0)\n"
                "c.cuCtxSetCurrent(x); p = ctypes.c_uint64(); size = ctypes.c_size_t(8 << 20)\n"
                "print([c.cuMemAlloc_v2(ctypes.byref(p), size) for _ in 'ab'])")
        r = self.expect(0, *RUN, "--gpu", "null", "--mem", "4M", "--", PYTHON, "-c", code)
        self.assertEqual(r.stdout, "[2, 2]\n", r.stderr)
        self.assertEqual(r.stderr.count("limit of --mem reached"), 1, r.stderr)

    @needs_libraries
    def test_a_limit_of_memory_without_a_unit_is_doubted(self):
        r = self.expect(0, *RUN, "--gpu", "null", "--mem", "100", "--", "true")
        self.assertIn("--mem limits the program to 100 bytes", r.stderr)
        r = self.expect(0, *RUN, "--gpu", "null", "--mem", "1M", "--", "true")
        self.assertNotIn("--mem", r.stderr)

    @needs_libraries
    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU")
    def test_injection_without_a_driver_says_so(self):
        r = self.expect(0, "run", "--inject", "--trace", "t.hed", "--", "true")
        self.assertIn("there is no NVIDIA driver with a GPU here", r.stderr)

    def test_an_option_replaces_a_bad_variable(self):
        env = clean_environment(HEDDLE_TRACE_FULL="maybe")
        r = self.heddle("run", "--trace-full", "drop", "--print-env", env=env)
        self.assertNotIn("HEDDLE_TRACE_FULL:", r.stderr)
        env = clean_environment(HEDDLE_SCHED="prio=top")
        r = self.heddle("run", "--sched", "prio=low", "--print-env", env=env)
        self.assertNotIn("HEDDLE_SCHED:", r.stderr)

    def test_a_settings_file_that_was_named_must_be_there_and_valid(self):
        self.expect(2, "run", "--config", "missing.conf", "true", says="missing.conf")
        self.write("bad.conf", "gpu = null\nwhat is this\n")
        self.expect(2, "run", "--config", "bad.conf", "true", says="bad.conf:2")

    def test_a_server_is_not_started_for_a_device_that_does_not_exist(self):
        self.expect(2, "serve", "--gpu", "cpu:h1000", says="there is no device 'h1000'; choose")

    @needs_libraries
    def test_a_default_settings_file_that_cannot_be_read_is_a_warning(self):
        # A folder, because root can read every file.
        os.makedirs(self.path("config/heddle/heddle.conf"))
        env = clean_environment(XDG_CONFIG_HOME=self.path("config"))
        r = self.expect(0, "run", "--gpu", "null", "--", "true", env=env, says="heddle: warning: ")
        self.assertIn("heddle.conf: not a regular file; the settings in it have no effect",
                      r.stderr)
        # The program does not read the file again.
        r = self.expect(0, "run", "--print-env", env=env)
        self.assertIn("export HEDDLE_CONFIG=''\n", r.stdout)

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
        script = ("import signal, sys\n"
                  "def got(n, frame):\n    sys.exit(40 + n)\n"
                  "signal.signal(signal.SIGTERM, got)\n"
                  "print('ready', flush=True)\n"
                  "signal.pause()\n")
        with subprocess.Popen([HEDDLE, *RUN, "--", PYTHON, "-c", script],
                              stdout=subprocess.PIPE, env=clean_environment(), text=True) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(PATIENCE), 40 + signal.SIGTERM)

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
        self.expect(127, *RUN, "no-such-program",
                    says="there is no program 'no-such-program' in PATH")
        self.expect(127, *RUN, "./no-such-program", says="there is no program './no-such-program'")
        self.expect(127, *RUN, "", says="there is no program ''")

    def test_programs_that_cannot_be_executed_are_126(self):
        self.write("text", "hello\n")
        self.expect(126, *RUN, "./text", says="permission denied")
        self.expect(126, *RUN, self.dir, says="it is a folder")
        self.write("orphan", "#!/no/such/interpreter\n", 0o755)
        self.expect(126, *RUN, "./orphan", says="interpreter")
        env = clean_environment(PATH=self.dir)
        self.expect(126, *RUN, "text", env=env, says="permission denied")

    def test_a_program_must_be_given(self):
        self.expect(2, "run", says="no program given")
        self.expect(2, "run", "--gpu", "null", "--", says="no program given")

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
        self.assertEqual(r.stderr.count("computes nothing"), 1)

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
    """The environment that the program gets."""

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

    def test_libraries_come_first_and_other_entries_are_kept(self):
        cuda, nvml = (os.path.join(LIBDIR, name) for name in LIBRARIES[1:])
        text = self.printed("--gpu", "null",
                            env=clean_environment(LD_PRELOAD="libm.so.6 /x/y.so",
                                                  LD_LIBRARY_PATH="/one::/two"))
        self.assertIn(f"export LD_PRELOAD='{cuda}:{nvml}:{NODES}:libm.so.6:/x/y.so'\n", text)
        self.assertIn(f"export LD_LIBRARY_PATH='{LIBDIR}:/one::/two'\n", text)

    def test_running_heddle_in_heddle_adds_nothing_twice(self):
        cuda, nvml = (os.path.join(LIBDIR, name) for name in LIBRARIES[1:])
        env = clean_environment(LD_LIBRARY_PATH=f"/one:{LIBDIR}")
        text = self.printed(env=env)
        self.assertIn(f"export LD_LIBRARY_PATH='{LIBDIR}:/one'\n", text)
        if not SANITIZED:
            env = self.environment("--gpu", "null", "--", HEDDLE, "run")
            self.assertEqual(env["LD_PRELOAD"], f"{cuda}:{nvml}:{NODES}")

    @unittest.skipIf(SANITIZED, "libraries with a sanitizer cannot be preloaded")
    def test_device_files_are_found_without_a_driver(self):
        ask = ("import os, stat\n"
               "for path in '/dev/nvidia0', '/dev/nvidiactl':\n"
               "    for s in os.stat(path), os.lstat(path):\n"
               "        assert stat.S_ISCHR(s.st_mode) and os.major(s.st_rdev) == 195, s\n"
               "    assert os.path.exists(path) and os.access(path, os.R_OK | os.W_OK)\n"
               "    assert not os.access(path, os.X_OK)\n"
               "assert not os.path.exists('/dev/nvidia-none')\n"
               "assert os.stat('/dev/null').st_rdev == os.makedev(1, 3)\n"
               "assert os.access('/', os.X_OK) and not os.access('/none', os.F_OK)\n")
        self.expect(0, "run", "--gpu", "null", "--", PYTHON, "-c", ask)

    def test_device_files_are_not_made_up_beside_a_driver(self):
        text = self.printed("--gpu", "gpu", env=clean_environment(LD_PRELOAD=f"{NODES}:/x/y.so"))
        self.assertNotIn(NODES, text)
        self.assertIn("/x/y.so", text)

    def test_no_preload_leaves_ld_preload_alone(self):
        text = self.printed("--no-preload")
        self.assertNotIn("LD_PRELOAD", text)
        self.assertIn("LD_LIBRARY_PATH", text)

    @unittest.skipIf(SANITIZED, "libraries with a sanitizer cannot be preloaded")
    def test_the_program_loads_the_libraries(self):
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

    def test_log_is_warn_unless_it_is_set(self):
        self.assertEqual(self.environment()["HEDDLE_LOG"], "warn")
        self.assertEqual(self.environment(HEDDLE_LOG="error")["HEDDLE_LOG"], "error")
        self.assertEqual(self.environment(HEDDLE_LOG="")["HEDDLE_LOG"], "")
        conf = self.write("log.conf", "log = info\n")
        self.assertNotIn("HEDDLE_LOG", self.environment("--config", conf))


@needs_libraries
class Trace(Case):
    """The trace's path is checked before the program runs."""

    def test_the_path_is_absolute_and_the_owner_is_the_program(self):
        script = "echo $HEDDLE_TRACE $HEDDLE_TRACE_OWNER $$"
        r = self.expect(0, *RUN, "--trace", "t.hed", "sh", "-c", script)
        path, owner, pid = r.stdout.split()
        self.assertEqual(path, self.path("t.hed"))
        self.assertEqual(owner, pid)

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_folder_that_may_not_be_entered(self):
        # The folder of the tests is not for others, so it is one of its own.
        with tempfile.TemporaryDirectory(prefix="hed") as secret:
            os.chmod(secret, 0o700)
            words = [*RUN, "--gpu", "null", "--trace", f"{secret}/t.hed", "true"]
            r = subprocess.run([HEDDLE, *words], env=clean_environment(), capture_output=True,
                               text=True, cwd="/", timeout=PATIENCE, stdin=subprocess.DEVNULL,
                               user=65534, group=65534, extra_groups=[])
        if r.returncode == 126 or "libraries" in r.stderr:
            self.skipTest("the build is not for others")
        self.assertEqual(r.returncode, 2, r.stderr)
        self.assertIn(f"cannot write in {secret}: Permission denied", r.stderr)

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

    def test_a_trace_survives_a_missing_program(self):
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
            # Root can write anywhere, so become another user, if that one can reach this folder.
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
    def test_a_full_disk_is_refused(self):
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
                              capture_output=True, text=True, timeout=PATIENCE)

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
                # Damage matters in the header and in the table of segments.
                broken[chance.randrange(min(len(broken), 600))] = chance.randrange(256)
            self.write(os.path.join("lib", "heddle", LIBRARIES[2]), bytes(broken))
            self.assertIn(self.run_installed("run", "--print-env").returncode, (0, 125))


if __name__ == "__main__":
    unittest.main()
