#!/usr/bin/env python3
"""An agent of the Agent Client Protocol that plays a turn with each kind of content.

It sends prose, lists, tables, code, thoughts and plans. Its tool calls succeed and
fail. It starts a sub-agent, asks for permissions, asks a question, sends a form, and
shows a picture. So the screens and pictures made with it show all of that, in any
client of the protocol.
"""

import base64
import json
import struct
import sys
import zlib

PLAN = ["Find where the row is lost", "Mend the parser", "Run the tests"]

THOUGHT = """The reader stops at the first empty field, so a row that ends with a comma \
is taken for the end of the file. I should look at the tests first."""

FINDINGS = """# Why the last row is lost

The reader takes a row that **ends with a comma** for the end of the file. Two places do it, *both* by hand:

1. `split()` in src/rows.py:2 drops what is empty.
2. The caller trusts it:
   - for files, see [the manual](https://example.org/manual/rows)
   - for pipes, where ~~nothing~~ little can be done

## What it costs

| Input | 名字 | Rows | Kept |
|:------|:----:|-----:|------|
| `a,b,` | 一 | 1 | ✅ yes |
| `a,,b` with a longer name | 二二 | 1000 | 🎉 most of them |

| Reader | What it takes for the end | What is lost | Who is told |
|--------|---------------------------|--------------|-------------|
| [files](https://example.org/files) | a row in which **nothing** stands, and one that ends with a comma | all rows from there on | nobody |
| pipes | the end of the pipe | nothing | whoever reads `stderr` |

> An empty field is a field.

```python
def split(line):
    # Empty fields count.
    return [field.strip() for field in line.split(",")]
```

The same in Go, for the other reader, and how to see it:

```go
func split(line string) []string {
	return strings.Split(line, ",") // empty fields count
}
```

```sh
printf 'a,b,\\n' | ./rows --count   # 0, and should be 1
```

"""

TESTS = ("\x1b[32m✓\x1b[0m rows: one field\n\x1b[32m✓\x1b[0m rows: two fields\n"
         "\x1b[1;31m✗ rows: a comma at the end\x1b[0m\n    \x1b[2mwant\x1b[0m 1 row\n    \x1b[2mgot\x1b[0m  0 rows\n"
         "\x1b[33m1 of 3 failed\x1b[0m in 0.2 s\n")

PASSED = "".join(f"\x1b[32m✓\x1b[0m rows: case {number}\n" for number in range(1, 31)) + "30 passed\n"

OLD = '''def split(line):
    return [field for field in line.split(",") if field]


def count(lines):
    return len([line for line in lines if split(line)])
'''

NEW = OLD.replace(
    '    return [field for field in line.split(",") if field]\n',
    '    # Empty fields count.\n    return [field.strip() for field in line.split(",")]\n')

CLOSING = """Done: an empty field is a field, in src/rows.py:3. All 30 tests pass. Left to do:

- [x] the reader of files
- [ ] the reader of pipes, which `make check` does not run
"""

OPTIONS = [{"optionId": "allow", "name": "Allow", "kind": "allow_once"},
           {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
           {"optionId": "reject", "name": "Reject", "kind": "reject_once"}]

FORM = {"type": "object", "required": ["title"], "properties": {
    "title": {"type": "string", "title": "Title", "minLength": 3},
    "kind": {"type": "string", "title": "Kind", "enum": ["fix", "feature", "chore"], "default": "fix"},
    "draft": {"type": "boolean", "title": "As a draft", "default": True}}}

requests = 0
capabilities = {}
folder = "."


def picture(width=160, height=48):
    """Returns a PNG file with a bar chart."""
    heights = [12, 40, 30, 44, 20, 36, 8, 28]
    rows = b""
    for y in range(height):
        rows += b"\0"
        for x in range(width):
            bar = heights[x * len(heights) // width]
            gap = x % (width // len(heights)) < 3
            rows += bytes((70, 130, 180) if height - y <= bar and not gap else (240, 240, 240))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")).decode()


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(update_kind, /, **members):
    send({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": update_kind, **members}}})


def text(words):
    return {"type": "text", "text": words}


def say(words):
    """Sends the text in pieces, as a model does."""
    for start in range(0, len(words), 40):
        update("agent_message_chunk", content=text(words[start:start + 40]))


def plan(done):
    update("plan", entries=[
        {"content": words, "priority": "medium",
         "status": "completed" if at < done else "in_progress" if at == done else "pending"}
        for at, words in enumerate(PLAN)])


def call(name, title, kind, given, parent=None, **members):
    """Begins a tool call, and returns its identification for updates."""
    call.count = getattr(call, "count", 0) + 1
    marks = {"claudeCode": {"toolName": name, **({"parentToolUseId": parent} if parent else {})}}
    begun = {"toolCallId": f"call-{call.count}", "title": title, "kind": kind, "rawInput": given, "_meta": marks,
             **members}
    update("tool_call", status="pending", **begun)
    return begun


def end(begun, status="completed", output=None):
    content = {} if output is None else {"content": [{"type": "content", "content": output}]}
    update("tool_call_update", toolCallId=begun["toolCallId"], status=status, _meta=begun["_meta"], **content)


def ask(method, params):
    """Sends a request to the client, and waits for its result."""
    global requests
    requests += 1
    send({"id": f"a{requests}", "method": method, "params": {"sessionId": "s", **params}})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"a{requests}" and "method" not in message:
            return message.get("result", {})
    sys.exit()


def allowed(begun, options=None):
    """Asks for permission; returns the id of the chosen option."""
    outcome = ask("session/request_permission", {"toolCall": begun, "options": options or OPTIONS}).get("outcome", {})
    return outcome.get("optionId", "reject")


def turn():
    """Plays the turn."""
    plan(0)
    update("agent_thought_chunk", content=text(THOUGHT))
    say("I look at the tests first.\n\n")
    end(call("Read", "Read src/rows.py", "read", {"file_path": f"{folder}/src/rows.py"},
             locations=[{"path": f"{folder}/src/rows.py"}]), output=text(OLD))
    end(call("Grep", "grep \"split(\"", "search", {"pattern": "split\\("}), output=text("src/rows.py:1\nsrc/rows.py:6\n"))
    end(call("Bash", "python3 -m rows.test --colour", "execute",
             {"command": "python3 -m rows.test --colour", "description": "Run the tests"}), "failed", text(TESTS))
    outer = call("Task", "Find other readers", "think", {"description": "Find other readers", "prompt": "Who else reads rows?"})
    end(call("Bash", "grep -rn 'split(' .", "execute", {"command": "grep -rn 'split(' ."}, outer["toolCallId"]),
        output=text("./src/rows.py:1:def split(line):\n"))
    end(outer, output=text("Nobody else reads rows."))
    say(FINDINGS)
    plan(1)
    change = call("Edit", "Edit src/rows.py", "edit",
                  {"file_path": f"{folder}/src/rows.py", "old_string": OLD, "new_string": NEW},
                  content=[{"type": "diff", "path": f"{folder}/src/rows.py", "oldText": OLD, "newText": NEW}],
                  locations=[{"path": f"{folder}/src/rows.py", "line": 2}])
    if allowed(change) == "reject":
        end(change, "failed")
    else:
        with open(f"{folder}/src/rows.py", "w", encoding="utf-8") as file:
            file.write(NEW)
        end(change)
    plan(2)
    remove = call("Bash", "rm -rf build/ && make all", "execute",
                  {"command": "rm -rf build/ && make all", "description": "Build everything again"})
    end(remove, "completed" if allowed(remove) != "reject" else "failed")
    end(call("Bash", "python3 -m rows.test", "execute", {"command": "python3 -m rows.test", "description": "Run the tests"}),
        output=text(PASSED))
    end(call("Read", "Read rows.png", "read", {"file_path": f"{folder}/rows.png"}),
        output={"type": "image", "mimeType": "image/png", "data": picture()})
    question = {"toolCallId": "question", "title": "Which reader next?", "kind": "other", "status": "pending",
                "rawInput": {"question": "Which reader next?"}, "_meta": {"duet": {"question": True}}}
    choice = allowed(question, [
        {"optionId": word, "name": word, "kind": "allow_once"} for word in ("files", "pipes", "none of them")])
    say(f"So {choice} it is.\n\n")
    if capabilities.get("elicitation"):
        ask("elicitation/create", {"mode": "form", "message": "What shall the commit say?", "requestedSchema": FORM})
    plan(3)
    say(CLOSING)
    update("usage_update", used=52000, size=200000)


def answer(method, given):
    """Answers any request except a prompt."""
    global capabilities, folder
    if method == "initialize":
        capabilities = given.get("clientCapabilities", {})
        return {"protocolVersion": 1, "agentInfo": {"name": "showcase", "version": "1.0"},
                "agentCapabilities": {"loadSession": False, "promptCapabilities": {"image": True, "embeddedContext": True}},
                "authMethods": []}
    if method == "session/new":
        folder = given.get("cwd", ".")
        return {"sessionId": "s", "modes": {"currentModeId": "ask", "availableModes": [
            {"id": "ask", "name": "Ask first"}, {"id": "code", "name": "Just code"}]}}
    return {}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        method, request = message.get("method"), message.get("id")
        if method == "session/prompt":
            turn()
            send({"id": request, "result": {"stopReason": "end_turn"}})
        elif request is not None and method:
            send({"id": request, "result": answer(method, message.get("params", {}))})


if __name__ == "__main__":
    main()
