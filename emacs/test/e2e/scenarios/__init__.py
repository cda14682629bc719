"""What users do, and what they then see."""

from scenarios import (changes, lists, markdown, notifications, questions, quitting, search, secrets,  # noqa: F401
                       sessions, terminals, trust)
