"""The suites of tests that editors' clients have: ERT, scenarios in Emacs, Node."""

import glob
import json
import os
import re

from tier import Outcome, Suite

REPORTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "node-reporter.mjs")


class Ert(Suite):
    """The tests in emacs/test, in one Emacs without a terminal."""

    def __init__(self, name, emacs):
        super().__init__(name)
        self.emacs = emacs

    def command(self, test=None):
        return ["make", "--no-print-directory", "-C", "emacs", "test", f"EMACS={self.emacs}", f"ONLY={test or ''}"]

    def parse(self, output):
        ran = re.search(r"^Ran \d+ tests?, (\d+) results? as expected, (\d+) unexpected(?:, (\d+) skipped)?", output,
                        re.MULTILINE)
        if not ran:
            return Outcome(broken="it ended before its last test")
        expected, unexpected, skipped = (int(number or 0) for number in ran.groups())
        outcome = Outcome(passed=expected, skipped=skipped)
        # A test that aborted, quit, or passed against its own expectation is listed with another word.
        outcome.failed = re.findall(r"^   FAILED  (\S+)", output[ran.end():], re.MULTILINE)
        if len(outcome.failed) != unexpected:
            outcome.broken = f"{unexpected} results were unexpected, and {len(outcome.failed)} of them failed"
        return outcome


class Scenarios(Suite):
    """The scenarios in emacs/test/e2e, in an Emacs in a terminal."""

    def __init__(self, name, emacs, which=""):
        super().__init__(name)
        self.emacs = emacs
        self.which = which  # arguments of emacs/test/e2e/run

    def command(self, test=None):
        return ["make", "--no-print-directory", "-C", "emacs", "e2e", f"EMACS={self.emacs}", f"PLAY={test or self.which}"]

    def parse(self, output):
        played = re.search(r"^Played \d+ scenarios, (\d+) as expected, (\d+) unexpected$", output, re.MULTILINE)
        if not played:
            return Outcome(broken="it ended before its last scenario")
        outcome = Outcome(passed=int(played[1]), failed=re.findall(r"^FAILED (\S+) \([\d.]+ s\)$", output, re.MULTILINE),
                          notes=re.findall(r"^not played: .*", output, re.MULTILINE))
        outcome.skipped = len(outcome.notes)
        if len(outcome.failed) != int(played[2]):
            outcome.broken = f"{played[2]} scenarios were unexpected, and {len(outcome.failed)} of them failed"
        return outcome


class Node(Suite):
    """Tests of node --test. A test is called FILE: NAME."""

    def __init__(self, name, cwd, results, files=("*.test.mjs",), options=(), pictures="", only=()):
        super().__init__(name, cwd)
        self.only = only  # the beginnings of the names of the tests that run; all run without it
        self.expected = 0  # how many tests have to run; 0: any number
        self.results = results  # the file that node-reporter.mjs writes
        self.files = files
        self.options = options
        self.pattern = pictures  # of the pictures of a test, with FILE in place of the name of its file

    def command(self, test=None):
        if os.path.exists(self.results):
            os.remove(self.results)
        files = [os.path.relpath(path, self.cwd) for pattern in self.files for path in self._glob(pattern)]
        self.expected = 0 if test else len(self.only)
        only = [f"--test-name-pattern=^{escape(name)}" for name in self.only]
        if test:
            file, name = test.split(": ", 1)
            files = [path for path in files if os.path.basename(path) == file]
            for picture in self.pictures(test):  # of the first run
                os.remove(picture)
            only = [f"--test-name-pattern=^{escape(name)}$"]
        return ["node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout",
                f"--test-reporter={REPORTER}", f"--test-reporter-destination={self.results}",
                *self.options, *only, *files]

    def parse(self, output):
        outcome = Outcome()
        try:
            with open(self.results, encoding="utf-8") as file:
                results = [json.loads(line) for line in file]
        except (FileNotFoundError, json.JSONDecodeError):
            return Outcome(broken="node wrote no results")
        for result in results:
            path, name = result.get("file") or "", result["name"]
            if result["skipped"]:
                outcome.skipped += 1
            elif result["passed"]:
                outcome.passed += 1
            elif not path or os.path.basename(name) == os.path.basename(path):
                outcome.broken = f"{os.path.basename(name)} ended before its tests"
            else:
                outcome.failed.append(f"{os.path.basename(path)}: {name}")
        if self.expected and outcome.passed + len(outcome.failed) != self.expected:
            outcome.broken = outcome.broken or f"{self.expected} tests should have run"
        return outcome

    def pictures(self, test):
        return self._glob(self.pattern.replace("FILE", test.split(".test.mjs: ")[0])) if self.pattern else []

    def _glob(self, pattern):
        return sorted(glob.glob(os.path.join(self.cwd, pattern)))


def escape(name):
    """Returns a regular expression of JavaScript that matches name."""
    return re.sub(r"[\\^$.*+?()[\]{}|/]", r"\\\g<0>", name)
