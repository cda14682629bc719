"""Actions of users, and the screens that follow."""

from scenarios import (agents, automation, changes, day, forms, lists, markdown, notifications, questions,  # noqa: F401
                       quitting, readme, remote, replies, screens, search, secrets, sessions, terminals,
                       trust)

# The scenarios with the widest coverage. An older Emacs runs only these; the newest one runs all.
SMOKE = [
    "first_start",                 # prompt, transcript, list
    "compose_loses_nothing",       # compose buffer and its history
    "streams_and_is_interrupted",  # stream, interrupt, continue
    "edits_and_answers",           # question: edit the input, answer
    "fills_in_a_form",             # form
    "reverts_one_of_two",          # diff, hunks, files on disk
    "server_killed",               # reconnect after a kill
    "daemon_killed",               # continue a turn after a kill
    "emacs_killed",                # a turn and a question survive Emacs
    "two_emacsen",                 # two editors, one answer
    "terminals_in_term",           # terminal
    "menu",                        # menu
    "archives",                    # list: marks and actions
]

# A day: what .ci/run plays in each Emacs. All of them are also played by `make test-clients`.
DAY = [
    "first_start",         # prompt, transcript, list
    "edits_and_answers",   # question: edit the input, answer
    "emacs_killed",        # a turn and a question survive Emacs
    "daemon_killed",       # continue a turn after a kill
    "reverts_one_of_two",  # diff, hunks, files on disk
    "lands_a_worktree",    # worktree, land
]
