"""What users do, and what they then see."""

from scenarios import (changes, lists, markdown, notifications, questions, quitting, replies,  # noqa: F401
                       search, secrets, sessions, terminals, trust)
