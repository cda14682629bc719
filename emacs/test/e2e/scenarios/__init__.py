"""What users do, and what they then see."""

from scenarios import (agents, automation, changes, forms, lists, markdown, notifications, questions,  # noqa: F401
                       quitting, readme, remote, replies, screens, search, secrets, sessions, terminals,
                       trust)

# The scenarios that exercise most. An older Emacs plays these, and the newest one plays all.
SMOKE = [
    "first_start",                 # prompt, transcript, list
    "compose_loses_nothing",       # compose buffer and its history
    "streams_and_is_interrupted",  # stream, interrupt, continue
    "edits_and_answers",           # question: edit the input, answer
    "fills_in_a_form",             # form
    "reverts_one_of_two",          # diff, hunks, files on disk
    "server_killed",               # reconnect after a kill
    "daemon_killed",               # a turn is continued after a kill
    "emacs_killed",                # a turn and a question outlive Emacs
    "two_emacsen",                 # two editors, one answer
    "terminals_in_term",           # terminal
    "menu",                        # menu
    "archives",                    # list: marks and actions
]
