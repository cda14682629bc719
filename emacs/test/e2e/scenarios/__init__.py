"""What users do, and what they then see."""

from scenarios import (agents, changes, forms, lists, markdown, notifications, questions,  # noqa: F401
                       quitting, readme, remote, replies, search, secrets, sessions, terminals,
                       trust)
