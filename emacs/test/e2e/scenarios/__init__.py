"""What users do, and what they then see."""

from scenarios import (agents, changes, forms, lists, notifications, questions, quitting, search, secrets,  # noqa: F401
                       sessions, terminals, trust)
