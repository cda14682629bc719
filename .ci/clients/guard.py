#!/usr/bin/env python3
"""Runs one command and leaves no process behind.

    guard.py SECONDS COMMAND...

When the command ends, its descendants have a few seconds to end too; then guard.py
kills them. When SECONDS are over, when guard.py receives a signal, or when its parent
dies, guard.py kills all of them at once. Its exit status is that of the command, 124
after SECONDS.

On Linux guard.py adopts every descendant whose parent has ended, so it also finds a
process that started a session of its own, as tmux, Chromium and duet-rpc do. On other
systems it finds only descendants whose parents still run.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

GRACE = 5  # seconds that descendants have after the end of the command
TIMED_OUT = 124
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Interrupted(Exception):
    """The command has to end now. The argument is the exit status of guard.py."""


def adopt_descendants():
    """Makes Linux hand over orphaned descendants, and send SIGTERM when the parent dies."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        parent = os.getppid()
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the second prctl
            sys.exit(128 + signal.SIGTERM)


def descendants():
    """Returns the descendants of this process: a dict from process id to program name."""
    listing = subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,stat=,comm="], stdout=subprocess.PIPE, text=True)
    output, _ = listing.communicate()
    children, names = {}, {}
    for line in output.splitlines():
        pid, parent, state, name = line.split(None, 3)
        if int(pid) != listing.pid:
            children.setdefault(int(parent), []).append(int(pid))
            names[int(pid)] = None if state.startswith("Z") else name
    found, parents = {}, [os.getpid()]
    while parents:
        for pid in children.get(parents.pop(), []):
            parents.append(pid)
            if names[pid] is not None:
                found[pid] = names[pid]
    return found


def reap():
    """Collects the exit status of every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill_descendants():
    """Kills all descendants, also those that start meanwhile."""
    while pids := descendants():
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
        reap()


def await_descendants():
    """Waits until no descendant runs, at most GRACE seconds; returns those that still run."""
    end = time.monotonic() + GRACE
    while (left := descendants()) and time.monotonic() < end:
        time.sleep(0.05)
        reap()
    return left


def await_exit(pid):
    """Returns the exit status of a child; reaps adopted processes meanwhile."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def interrupt(number, _frame):
    """Handles the first signal, and ignores those that follow."""
    for each in (*SIGNALS, signal.SIGALRM):
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(TIMED_OUT if number == signal.SIGALRM else 128 + number)


def main():
    adopt_descendants()
    for number in (*SIGNALS, signal.SIGALRM):
        signal.signal(number, interrupt)
    seconds, command = int(sys.argv[1]), sys.argv[2:]
    try:
        signal.alarm(seconds)
        started = subprocess.Popen(command, start_new_session=True)  # named: Python reaps a Popen that it deletes
        status = await_exit(started.pid)
        signal.alarm(0)
        if left := await_descendants():
            print("left behind: " + ", ".join(f"{name} ({pid})" for pid, name in left.items()), flush=True)
    except FileNotFoundError as error:
        print(f"cannot start {command[0]}: {error.strerror}", flush=True)
        status = 127
    except Interrupted as interrupted:
        (status,) = interrupted.args
        if status == TIMED_OUT:
            print(f"the command did not end within {seconds} s", flush=True)
    for number in (*SIGNALS, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    kill_descendants()
    sys.exit(status)


if __name__ == "__main__":
    main()
