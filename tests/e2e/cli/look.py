#!/usr/bin/env python3
"""The heddle command from the outside: the commands that look at the machine (`doctor`, `devices`)
and the manual.

    HED_BUILD=build/dev look.py [Case.test...]
"""

import json
import os
import re
import shutil
import subprocess
import unittest

from case import (
    FAKE_DRIVER, LIBDIR, SOURCE, Case, clean_environment, meetings, needs_libraries, options_in)


class Doctor(Case):
    """The doctor never hangs, never fails because there is no GPU, and says what to do."""

    @needs_libraries
    def test_a_machine_without_gpu_is_a_warning(self):
        if os.path.exists("/proc/driver/nvidia/version") or os.path.exists("/dev/dxg"):
            self.skipTest("there is a GPU here")
        r = self.expect(0, "doctor")
        self.assertRegex(r.stdout, "(warn|ok  )  GPU          no GPU here")
        self.assertNotIn("FAIL", r.stdout)
        # Paths are not wrapped, wherever the tree lies.
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
    def test_our_libraries_are_fine(self):
        findings = json.loads(self.heddle("doctor", "--json").stdout)["findings"]
        ours = [f for f in findings if f["name"] == "libraries"]
        self.assertEqual([f["level"] for f in ours], ["ok"], ours)

    @needs_libraries
    def test_heddle_is_not_mistaken_for_the_driver(self):
        env = clean_environment(HEDDLE_DRIVER=os.path.join(LIBDIR, "libcuda.so.1"))
        r = self.expect(1, "doctor", env=env)
        self.assertIn("heddle itself", " ".join(r.stdout.split()))

    def test_a_driver_that_is_not_there_fails(self):
        r = self.expect(1, "doctor", env=clean_environment(HEDDLE_DRIVER="/no/libcuda.so.1"))
        self.assertIn("does not exist", " ".join(r.stdout.split()))

    def test_a_driver_may_be_named_from_here(self):
        self.write("libcuda.so.1", "not a library")
        text = " ".join(self.heddle("doctor", env=clean_environment(HEDDLE_DRIVER="libcuda.so.1"))
                        .stdout.split())
        self.assertIn("the setting `driver` is " + self.path("libcuda.so.1"), text)

    def fake(self, how):
        """What the doctor says about a driver that behaves like this."""
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

    def test_a_driver_that_hangs_is_abandoned(self):
        self.assertIn("cuInit did not return within", self.fake("hang"))

    def finding(self, name, **env):
        """Level and text of a finding."""
        r = self.heddle("doctor", "--json", env=clean_environment(**env))
        found = [f for f in json.loads(r.stdout)["findings"] if f["name"] == name]
        self.assertEqual(len(found), 1, r.stdout)
        return found[0]["level"], found[0]["text"]

    def test_sharing_is_checked(self):
        level, text = self.finding("sharing")
        if level == "ok":  # another test may just have left such a file
            self.assertIn("programs can share a GPU", text)
        self.assertEqual(meetings("doctor-*"), [])

    def test_snapshots_are_checked(self):
        level, text = self.finding("snapshots")
        self.assertNotEqual(level, "FAIL", text)
        self.assertIn("criu", text)
        if not shutil.which("criu", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/sbin"):
            self.assertIn("not installed", text)
        path = self.finding("snapshots", PATH="/nonexistent")
        self.assertEqual(path[0], level, path)

    @needs_libraries
    def test_injection_is_checked(self):
        level, text = self.finding("--inject")
        self.assertNotEqual(level, "FAIL", text)
        self.assertRegex(text, r"CUPTI is /|no libcupti")
        self.assertEqual(self.finding("--inject", HEDDLE_CUPTI="/no/libcupti.so.13")[0], "FAIL")
        self.write("libcupti.so.13", "not a library")
        level, text = self.finding("--inject", HEDDLE_CUPTI=self.path("libcupti.so.13"))
        self.assertEqual(level, "FAIL")
        self.assertIn("the setting `cupti` is " + self.path("libcupti.so.13"), text)

    @needs_libraries
    def test_cupti_is_found_as_the_loader_does(self):
        for name in ("libcupti.so.13", "libcupti.so.12"):
            if not os.path.exists(FAKE_DRIVER):
                self.skipTest("no fake driver: set HED_FAKE_DRIVER")
            shutil.copy(FAKE_DRIVER, self.path(name))
        level, text = self.finding("--inject", LD_LIBRARY_PATH=self.dir)
        self.assertEqual(level, "ok")
        self.assertIn("CUPTI is " + self.path("libcupti.so.13"), text)

    def test_odd_loader_variables_are_reported(self):
        env = clean_environment(LD_LIBRARY_PATH="/usr/lib:")
        self.assertIn("empty entry", " ".join(self.heddle("doctor", env=env).stdout.split()))

    @needs_libraries
    def test_heddle_in_the_shell_is_reported(self):
        env = clean_environment(LD_LIBRARY_PATH=LIBDIR)
        self.assertIn("heddle's own folder",
                      " ".join(self.heddle("doctor", env=env).stdout.split()))

    def test_a_device_for_frameworks_is_recommended(self):
        said = " ".join(self.heddle("doctor").stdout.split())
        if "device profiles" not in said:
            self.skipTest("the CPU GPU is not built")
        self.assertIn("for PyTorch and other frameworks choose the default (--gpu cpu) or cpu:a100",
                      said)

    def test_hidden_devices_are_reported(self):
        r = self.heddle("doctor", env=clean_environment(CUDA_VISIBLE_DEVICES="-1"))
        self.assertIn("hides all devices", " ".join(r.stdout.split()))

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn("\033", self.heddle("doctor").stdout)


@needs_libraries
class Devices(Case):
    """The devices as programs would see them."""

    def test_a_wrong_gpu_is_named_as_it_was_given(self):
        r = self.expect(2, "devices", "--gpu", "foo", says="devices: --gpu: there is no 'foo'")
        self.assertNotIn("HEDDLE_GPU", r.stderr)

    def test_null_has_devices(self):
        r = self.expect(0, "devices", "--gpu", "null")
        self.assertRegex(r.stdout, r"^CUDA \d+\.\d+, \d+ devices? \(--gpu null\)\n")
        self.assertLessEqual(max(map(len, r.stdout.split("\n"))), 80, r.stdout)

    def test_devices_that_run_no_machine_code_are_reported(self):
        if "device profiles" not in self.heddle("doctor").stdout:
            self.skipTest("the CPU GPU is not built")
        for profile in ("t4", "a100"):
            self.assertNotIn("machine", self.expect(0, "devices", "--gpu", f"cpu:{profile}").stdout)
        self.assertIn("code runs on the CPU for compute capability 7.5 to ",
                      self.expect(0, "devices", "--gpu", "cpu:b200").stdout)

    def test_json_can_be_read(self):
        report = json.loads(self.expect(0, "devices", "--gpu", "null", "--json").stdout)
        self.assertEqual(report["gpu"], "null")
        self.assertGreater(len(report["devices"]), 0)
        for i, device in enumerate(report["devices"]):
            self.assertEqual(device["index"], i)
            self.assertRegex(device["uuid"], r"^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertRegex(device["compute_capability"], r"^\d+\.\d+$")
            self.assertGreater(device["memory_bytes"], 0)

    def test_a_missing_driver_is_explained(self):
        env = clean_environment(HEDDLE_DRIVER="/no/libcuda.so.1")
        r = self.expect(1, "devices", env=env, says="CUDA_ERROR")
        self.assertIn("heddle doctor", r.stderr)
        self.assertEqual(r.stderr.count("/no/libcuda.so.1 not found"), 1)
        self.assertNotIn("nvidia-", r.stderr)
        report = json.loads(self.expect(1, "devices", "--json", env=env).stdout)
        self.assertTrue(report["error"]["name"].startswith("CUDA_ERROR"))
        self.assertIn("not found", report["error"]["hint"])

    def test_a_driver_missing_everywhere_is_reported_once(self):
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
        for words in self.subcommands():
            page = pages.get(f"heddle-{words[0]}.1", pages["heddle.1"]).replace("\\-", "-")
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
    unittest.main()
