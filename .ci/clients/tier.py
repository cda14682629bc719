"""Runs suites of tests side by side, runs a single failed test again, and reports.

A Tier has lanes. A lane is a thread that runs steps and suites one after the other. As many
lanes run at once as the machine has processors, and at least two.
A step is a command that has to succeed. A suite is a command that runs many tests and
reports each one by name.

When all lanes have ended, each test that failed runs once more, alone. If it passes,
the tier prints `FLAKY name`. If it fails again, the tier fails. Three flaky tests in a
run fail the tier too. A failure that is not a single test never runs again: a step, a
crash, a timeout, a suite in which no test ran.

guard.py runs every command, so an interrupted tier leaves no process behind.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field

GUARD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "guard.py")
SECONDS = 3600  # how long a command may take before it counts as hung
FLAKY_LIMIT = 3  # so many flaky tests in a run fail the tier
RETRY_LIMIT = 10  # with more failed tests than that, none runs again
TIMED_OUT = 124  # exit status of guard.py


@dataclass
class Outcome:
    """What a suite reported."""

    passed: int = 0
    skipped: int = 0
    failed: list = field(default_factory=list)  # names of tests that can run alone
    broken: str = ""  # why the suite failed as a whole
    notes: list = field(default_factory=list)


class Suite:
    """A command that runs tests. Subclasses know the command and its output."""

    def __init__(self, name, cwd=None):
        self.name = name
        self.cwd = cwd

    def command(self, test=None):
        """Returns the command that runs all tests, or the test of that name alone."""
        raise NotImplementedError

    def parse(self, output):
        """Returns the Outcome that the output of the command reports."""
        raise NotImplementedError

    def pictures(self, test):
        """Returns files that help to understand the failure of a test."""
        return []

    def judge(self, status, output):
        """Returns the Outcome of a command with that exit status and output."""
        outcome = self.parse(output)
        if status == TIMED_OUT:
            outcome.broken = f"it did not end within {SECONDS} s"
        elif status > 128:
            outcome.broken = f"signal {status - 128} ended it"
        elif status and not outcome.failed:
            outcome.broken = outcome.broken or f"it ended with status {status}, and no test failed"
        elif not outcome.passed and not outcome.failed:
            outcome.broken = outcome.broken or "no test ran"
        outcome.notes += re.findall(r"^left behind: .*", output, re.MULTILINE)
        return outcome


class Stopped(BaseException):
    """Ends a lane because the tier ends."""


class Tier:
    """The lanes, their results and their processes."""

    def __init__(self, artifacts, summary="", show=print):
        self.artifacts = artifacts
        self.summary = summary  # a file that gets a line "PASSED FLAKY"
        self.show = show
        self.lock = threading.RLock()
        self.lanes = []
        self.processors = threading.Semaphore(max(2, os.cpu_count() or 2))
        self.processes = set()
        self.stopping = False
        self.passed = 0
        self.flaky = []
        self.failures = []  # names of tests, steps and suites
        self.single = []  # pairs of a suite and the name of a failed test
        shutil.rmtree(artifacts, ignore_errors=True)
        os.makedirs(artifacts)

    # For lanes.

    def step(self, name, command, **options):
        """Runs a command that has to succeed; returns whether it did."""
        start = time.monotonic()
        status, output, _ = self.run(name, command, **options)
        if status:
            self.fail(name, output, f"it ended with status {status}")
        else:
            self.tell(f"{name}: done", start)
        return status == 0

    def suite(self, suite):
        """Runs a suite, and keeps its failed tests for later."""
        start = time.monotonic()
        status, output, path = self.run(suite.name, suite.command(), cwd=suite.cwd)
        outcome = suite.judge(status, output)
        with self.lock:
            self.passed += outcome.passed
            for note in outcome.notes:
                self.show(f"{suite.name}: {note}")
            if outcome.broken:
                self.fail(suite.name, output, outcome.broken)
                self.failures += [f"{suite.name}: {test}" for test in outcome.failed]
            elif outcome.failed:
                self.show(output.rstrip("\n"))
                self.tell(f"{suite.name}: {outcome.passed} tests passed, {len(outcome.failed)} failed", start)
                for test in outcome.failed:
                    self.keep(suite, test, "first", path)
                    self.single.append((suite, test))
            else:
                skipped = f", {outcome.skipped} skipped" if outcome.skipped else ""
                self.tell(f"{suite.name}: {outcome.passed} tests passed{skipped}", start)

    def fail(self, name, output, why):
        """Reports a failure that never runs again."""
        with self.lock:
            self.show(output.rstrip("\n"))
            self.show(f"{name}: FAILED, {why}")
            self.failures.append(name)

    def not_tested(self, what):
        """Reports what cannot be tested on this machine. With CI=true that is a failure."""
        with self.lock:
            self.show(f"not tested: {what}")
            if os.environ.get("CI") == "true":
                self.failures.append(what)

    def tell(self, line, start):
        self.show(f"{line} ({time.monotonic() - start:.0f} s)")

    # Processes.

    def run(self, name, command, cwd=None, env=None):
        """Runs a command; returns its exit status, its output and the file that has it."""
        path = os.path.join(self.artifacts, slug(name) + ".txt")
        environment = {key: value for key, value in os.environ.items() if key != "DUET_TIER_SUMMARY"}
        with open(path, "wb") as output:
            with self.lock:
                if self.stopping:
                    raise Stopped
                process = subprocess.Popen(
                    [sys.executable, GUARD, str(SECONDS), *command], stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True, cwd=cwd, env={**environment, **(env or {})})
                self.processes.add(process)
            status = process.wait()
        with self.lock:
            self.processes.discard(process)
            if self.stopping:
                raise Stopped
        with open(path, encoding="utf-8", errors="replace") as file:
            return status, file.read(), path

    def stop(self):
        """Kills every process of the tier and waits until all are gone."""
        with self.lock:
            self.stopping = True
            processes = list(self.processes)
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()

    # The run.

    def lane(self, function, *arguments):
        """Adds a lane, which calls function once finish has started it and a processor is free."""
        def run():
            try:
                with self.processors:
                    function(self, *arguments)
            except Stopped:
                pass
            except Exception:  # a defect of this program
                self.fail(function.__name__, traceback.format_exc(), "it is broken")
        self.lanes.append(threading.Thread(target=run, daemon=True))

    def finish(self):
        """Runs the lanes, then failed tests again, and reports; returns the exit status."""
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

        def interrupt(number, _frame):
            for each in signals:
                signal.signal(each, signal.SIG_IGN)
            raise SystemExit(128 + number)
        for each in signals:
            signal.signal(each, interrupt)
        try:
            for thread in self.lanes:
                thread.start()
            for thread in self.lanes:
                thread.join()
            self.run_again()
        except SystemExit:
            self.show("interrupted")
            raise
        finally:
            self.stop()
        return self.report()

    def run_again(self):
        """Runs each failed test once more, alone."""
        if len(self.single) > RETRY_LIMIT:
            self.show(f"{len(self.single)} tests failed. None runs again, because more than {RETRY_LIMIT} failed.")
            self.failures += [f"{suite.name}: {test}" for suite, test in self.single]
            return
        for suite, test in self.single:
            start = time.monotonic()
            status, output, path = self.run(f"{suite.name} again", suite.command(test), cwd=suite.cwd)
            outcome = suite.judge(status, output)
            folder = self.keep(suite, test, "again", path)
            if status == 0 and outcome.passed == 1 and not outcome.failed and not outcome.broken:
                self.flaky.append(test)
                self.tell(f"FLAKY {test} in {suite.name}; both outputs are in {folder}", start)
            else:
                self.show(output.rstrip("\n"))
                self.tell(f"FAILED TWICE {test} in {suite.name}; both outputs are in {folder}", start)
                self.failures.append(f"{suite.name}: {test}")

    def keep(self, suite, test, name, path):
        """Keeps an output and its pictures; returns the folder."""
        folder = os.path.join(self.artifacts, slug(suite.name), slug(test))
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(path, os.path.join(folder, name + ".txt"))
        for picture in suite.pictures(test):
            shutil.copyfile(picture, os.path.join(folder, f"{name}-{os.path.basename(picture)}"))
        return folder

    def report(self):
        """Prints the summary; returns the exit status."""
        failed = len(self.failures)
        for name in self.failures:
            self.show(f"failed: {name}")
        if len(self.flaky) >= FLAKY_LIMIT:
            self.show(f"{len(self.flaky)} tests passed only when they ran again. "
                      f"{FLAKY_LIMIT} or more flaky tests fail the run.")
        self.show(f"tests: {self.passed} passed, {len(self.flaky)} flaky, {failed} failed")
        if self.summary:
            with open(self.summary, "a", encoding="utf-8") as file:
                file.write(f"{self.passed} {len(self.flaky)}\n")
        return 1 if failed or len(self.flaky) >= FLAKY_LIMIT else 0


def slug(name):
    """Returns a file name for a name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:100]
