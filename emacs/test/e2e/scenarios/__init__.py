"""What users do, and what they then see."""

from scenarios import (agents, automation, changes, forms, lists, markdown, notifications, questions,  # noqa: F401
                       quitting, readme, remote, replies, screens, search, secrets, sessions, terminals,
                       trust)
