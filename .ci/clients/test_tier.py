#!/usr/bin/env python3
"""Tests tier.py, guard.py and the parsers of suites.py, without any client."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import suites  # noqa: E402
import tier  # noqa: E402


class Fake(tier.Suite):
    """Tests that fail as often as told, and then pass."""

    def __init__(self, folder, failures, also=""):
        super().__init__("fake suite")
        self.folder = folder
        self.failures = failures  # how often each test fails, by its name
        self.also = also  # shell code at the end of a run

    def command(self, test=None):
        lines = []
        for name in [test] if test else self.failures:
            mark = os.path.join(self.folder, name)
            lines.append(f'n=$(cat {mark} 2>/dev/null || echo 0); echo $((n + 1)) >{mark}; '
                         f'if [ "$n" -lt {self.failures[name]} ]; then echo "bad {name}"; status=1; '
                         f'else echo "good {name}"; fi')
        return ["sh", "-c", "status=0; " + "; ".join([*lines, self.also or ":", "exit $status"])]

    def parse(self, output):
        return tier.Outcome(passed=len(re.findall("^good ", output, re.MULTILINE)),
                            failed=re.findall("^bad (.*)", output, re.MULTILINE))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="duet-tier-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.lines = []

    def tier(self):
        return tier.Tier(os.path.join(self.folder, "artifacts"), os.path.join(self.folder, "summary"), self.lines.append)

    def run_suite(self, failures, also=""):
        """Runs a tier of one fake suite; returns its exit status and what it printed."""
        run = self.tier()
        run.lane(lambda lane: lane.suite(Fake(self.folder, failures, also)))
        return run.finish(), "\n".join(self.lines)

    def kept(self, *path):
        with open(os.path.join(self.folder, *path), encoding="utf-8") as file:
            return file.read()


class Retries(Folder):
    def test_passing_tests_pass(self):
        status, said = self.run_suite({"one": 0, "two": 0})
        self.assertEqual(status, 0, said)
        self.assertTrue(said.endswith("\ntests: 2 passed, 0 flaky, 0 failed"), said)
        self.assertEqual(self.kept("summary"), "2 0\n")

    def test_fail_then_pass_is_flaky_and_passes(self):
        status, said = self.run_suite({"one": 1, "two": 0})
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(?m)^FLAKY one ")
        self.assertTrue(said.endswith("\ntests: 1 passed, 1 flaky, 0 failed"), said)
        self.assertEqual(self.kept("summary"), "1 1\n")
        self.assertEqual(self.kept("artifacts", "fake-suite", "one", "first.txt"), "bad one\ngood two\n")
        self.assertEqual(self.kept("artifacts", "fake-suite", "one", "again.txt"), "good one\n")
        self.assertEqual(self.kept("two"), "1\n", "a test that passed ran again")

    def test_fail_twice_fails(self):
        status, said = self.run_suite({"one": 2, "two": 0})
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^FAILED TWICE one ")
        self.assertNotIn("FLAKY", said)
        self.assertTrue(said.endswith("\ntests: 1 passed, 0 flaky, 1 failed"), said)

    def test_two_flaky_tests_pass_and_three_fail(self):
        status, said = self.run_suite({"one": 1, "two": 1, "three": 0})
        self.assertEqual(status, 0, said)
        for name in "one", "two", "three":
            os.remove(os.path.join(self.folder, name))
        status, said = self.run_suite({"one": 1, "two": 1, "three": 1})
        self.assertEqual(status, 1, said)
        self.assertIn("3 tests passed only when they ran again. 3 or more flaky tests fail the run.", said)

    def test_many_failures_do_not_run_again(self):
        status, said = self.run_suite({f"test{number}": 1 for number in range(11)})
        self.assertEqual(status, 1, said)
        self.assertNotIn("FLAKY", said)

    def test_what_is_no_single_test_fails_at_once(self):
        for failures, also in (({"one": 0}, "exit 3"), ({}, ""), ({"one": 1}, "kill -9 $$")):
            status, said = self.run_suite(failures, also)
            self.assertEqual(status, 1, said)
            self.assertNotIn("FLAKY", said)

    def test_failed_step_does_not_run_again(self):
        run = self.tier()
        ran = []
        run.lane(lambda lane: ran.append(lane.step("npm ci", ["sh", "-c", f"echo ran >>{self.folder}/ran; exit 7"])))
        self.assertEqual(run.finish(), 1, self.lines)
        self.assertEqual(ran, [False])
        self.assertEqual(self.kept("ran"), "ran\n")

    def test_defect_of_a_lane_fails(self):
        run = self.tier()
        run.lane(lambda lane: lane.nothing_of_that_name())
        self.assertEqual(run.finish(), 1, self.lines)


class Processes(Folder):
    def daemon(self):
        """Returns shell code that starts a daemon in a session of its own, and the file with its process id."""
        path = os.path.join(self.folder, "daemon")
        code = (f"import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
                f"  open({path!r} + '.new', 'w').write(str(os.getpid())); os.rename({path!r} + '.new', {path!r})\n"
                f"  time.sleep(600)\n os._exit(0)\n")
        return f"{sys.executable} -c {quoted(code)}", path

    def await_file(self, path):
        end = time.monotonic() + 60
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), end, f"{path} does not appear")
            time.sleep(0.02)
        return int(self.kept(path))

    def assert_gone(self, pid):
        end = time.monotonic() + 60
        while running(pid):
            self.assertLess(time.monotonic(), end, f"process {pid} still runs")
            time.sleep(0.02)

    @unittest.skipUnless(sys.platform == "linux", "only Linux hands over orphans")
    def test_suite_leaves_no_daemon(self):
        code, path = self.daemon()
        status, said = self.run_suite({"one": 0}, code)
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"fake suite: left behind: python")
        self.assert_gone(int(self.kept(path)))

    @unittest.skipUnless(sys.platform == "linux", "only Linux hands over orphans")
    def test_interrupted_or_killed_tier_leaves_no_process(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
            code, path = self.daemon()
            if os.path.exists(path):
                os.remove(path)
            program = textwrap.dedent(f"""
                import sys; sys.dont_write_bytecode = True; sys.path.insert(0, {HERE!r})
                import tier
                run = tier.Tier({self.folder!r} + "/artifacts")
                run.lane(lambda lane: lane.step("hangs", ["sh", "-c", {code + "; sleep 600"!r}]))
                sys.exit(run.finish())""")
            started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
            pid = self.await_file(path)
            started.send_signal(number)
            started.wait(60)
            self.assertNotEqual(started.returncode, 0)
            self.assert_gone(pid)

    def test_command_that_hangs_is_killed(self):
        guard = subprocess.run([sys.executable, tier.GUARD, "1", "sleep", "600"], capture_output=True, text=True)
        self.assertEqual((guard.returncode, guard.stdout), (124, "the command did not end within 1 s\n"))


class Parsers(Folder):
    def test_ert(self):
        parse = suites.Ert("Emacs", "emacs").judge
        summary = "Ran 5 tests, {} results as expected, {} unexpected, 1 skipped (2026-01-01 00:00:00+0000, 0.2 sec)\n"
        passed = parse(0, summary.format(4, 0))
        self.assertEqual((passed.passed, passed.skipped, passed.failed, passed.broken), (4, 1, [], ""))
        output = "   FAILED  1/5  aa (0.1 sec)\n" + summary.format(2, 2) + "\n2 unexpected results:\n"
        failed = parse(2, output + "   FAILED  aa\n   FAILED  bb  ((should nil))\n")
        self.assertEqual((failed.failed, failed.broken), (["aa", "bb"], ""))
        self.assertTrue(parse(2, output + "   FAILED  aa\n     QUIT  bb\n").broken)
        self.assertTrue(parse(2, "   passed  1/5  aa (0.1 sec)\n").broken)
        self.assertTrue(parse(0, summary.format(0, 0)).broken)

    def test_scenarios(self):
        parse = suites.Scenarios("Emacs", "emacs").judge
        output = ("passed menu (1.0 s)\nnot played: vterm: there is no vterm, run .ci/install\nFAILED forks (2.0 s)\n"
                  "waited 60 s\nPlayed 2 scenarios, 1 as expected, 1 unexpected\n")
        failed = parse(2, output)
        self.assertEqual((failed.passed, failed.skipped, failed.failed, failed.broken), (1, 1, ["forks"], ""))
        self.assertTrue(parse(1, "there is no program emacs\n").broken)

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("there is no node")
        mark = os.path.join(self.folder, "mark")
        name = """a (flaky) test/name of "it" [it's] 1+1 | $x"""
        with open(os.path.join(self.folder, "flaky.test.mjs"), "w", encoding="utf-8") as file:
            file.write(f"""import test from "node:test"; import fs from "node:fs";
                const name = {name!r};
                test(name, () => {{ if (!fs.existsSync("{mark}")) {{ fs.writeFileSync("{mark}", ""); throw new Error(); }} }});
                test("passes", () => {{}});
                test("is skipped", {{ skip: true }}, () => {{}});""".replace(repr(name), quoted_js(name)))
        def run():
            run = self.tier()
            run.lane(lambda lane: lane.suite(suites.Node("node", self.folder, os.path.join(self.folder, "results"))))
            return run.finish(), "\n".join(self.lines)
        status, said = run()
        self.assertEqual(status, 0, said)
        self.assertIn(f"FLAKY flaky.test.mjs: {name} in node", said)
        self.assertTrue(said.endswith("\ntests: 1 passed, 1 flaky, 0 failed"), said)
        with open(os.path.join(self.folder, "crash.test.mjs"), "w", encoding="utf-8") as file:
            file.write("throw new Error()")
        self.lines.clear()
        status, said = run()
        self.assertEqual(status, 1, said)
        self.assertIn("node: FAILED, crash.test.mjs ended before its tests", said)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def quoted_js(text):
    return "`" + text.replace("$", "\\$") + "`"


def running(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "" and not state.startswith("Z")


if __name__ == "__main__":
    unittest.main()
