"""What users do, and what they then see."""

from scenarios import changes, lists, questions, search, secrets, sessions, terminals, trust  # noqa: F401
