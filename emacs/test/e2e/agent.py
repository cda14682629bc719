#!/usr/bin/env python3
"""An agent of the Agent Client Protocol with its own modes, models and an option.

It takes no images. With --account FILE it works only while FILE exists: the login
creates it and the logout removes it. It answers a prompt with its settings. A prompt
that begins with "wait" is answered when the settings change.
"""

import json
import os
import sys

account = sys.argv[2] if sys.argv[1:2] == ["--account"] else None
now = {"mode": "ask", "model": "large", "thought": "low"}
waiting = None  # the request of a pending prompt


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def options():
    return [{"id": "thought", "name": "Thinking", "type": "select", "currentValue": now["thought"],
             "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]}]


def session():
    return {
        "sessionId": "s",
        "modes": {"currentModeId": now["mode"], "availableModes": [
            {"id": "ask", "name": "Ask first"}, {"id": "code", "name": "Just code"}]},
        "models": {"currentModelId": now["model"], "availableModels": [
            {"modelId": "large", "name": "Large"}, {"modelId": "small", "name": "Small"}]},
        "configOptions": options(),
    }


def say(request):
    """Sends the settings as a message, and ends the turn."""
    text = f"Mode {now['mode']}, model {now['model']}, thinking {now['thought']}."
    send({"method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
    send({"id": request, "result": {"stopReason": "end_turn"}})


def answer(method, request, given):
    """Answers any request except a prompt, and returns the result."""
    if method == "initialize":
        return {"protocolVersion": 1, "agentInfo": {"name": "choosy"},
                "agentCapabilities": {"loadSession": True, "auth": {"logout": {}} if account else {}},
                "authMethods": [{"id": "browser", "name": "Browser"}] if account else []}
    if method == "authenticate":
        open(account, "w", encoding="utf-8").close()
    elif method == "logout":
        os.remove(account)
    elif method in ("session/new", "session/load"):
        if account and not os.path.exists(account):
            return None
        return session()
    elif method == "session/set_mode":
        now["mode"] = given["modeId"]
    elif method == "session/set_model":
        now["model"] = given["modelId"]
    elif method == "session/set_config_option":
        now[given["configId"]] = given["value"]
        return {"configOptions": options()}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    method, request, given = message.get("method"), message.get("id"), message.get("params", {})
    if method == "session/cancel" and waiting is not None:
        send({"id": waiting, "result": {"stopReason": "cancelled"}})
        waiting = None
    elif method == "session/prompt":
        if any(block.get("text", "").startswith("wait") for block in given["prompt"]):
            waiting = request
        else:
            say(request)
    elif request is not None:
        result = answer(method, request, given)
        if result is None:
            send({"id": request, "error": {"code": -32000, "message": "Authentication required"}})
        else:
            send({"id": request, "result": result})
            if waiting is not None and method.startswith("session/set_"):
                say(waiting)
                waiting = None
