;;; duet-protocol.el --- Names and words of the protocol  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Made by `make generate' from the server's methods, events and states.

;;; Code:

(defconst duet-protocol-methods
  '(initialize
    ping
    health
    echo
    version
    listMethods
    describeMethods
    rpc.discover
    setLogLevel
    shutdown
    client.environment
    client.build
    exit
    usage.get
    turn.count
    daemon.status
    daemon.listen
    secret.provide
    daemon.stop
    project.list
    project.directories
    project.keep
    project.move
    project.forget
    trigger.list
    trigger.enable
    trigger.disable
    trigger.log
    trigger.test
    editor.offer
    editor.saved
    editor.call
    turn.list
    turn.get
    turn.wait
    turn.interrupt
    turn.edit
    turn.move
    attempt.start
    attempt.list
    attempt.choose
    session.start
    session.prompt
    session.fork
    session.list
    session.get
    session.set
    session.rename
    session.archive
    session.delete
    session.land
    session.save
    session.discard
    agent.describe
    agent.list
    agent.check
    agent.login
    agent.logout
    agent.sessions
    session.adopt
    agent.forget
    build.run
    build.list
    gate.list
    gate.check
    session.items
    session.search
    session.export
    change.list
    change.accept
    change.revert
    change.reopen
    session.rewind
    attachment.get
    approval.list
    approval.get
    approval.create
    approval.decide
    rule.list
    rule.delete
    approval.ask
    approval.request
    mcp.servers
    mcp.tools
    mcp.call
    preview.fetch
    preview.navigate
    preview.refresh
    preview.console
    preview.error
    preview.navigated
    preview.messages
    event.subscribe
    event.unsubscribe
    terminal.start
    terminal.list
    terminal.attach
    terminal.detach
    terminal.write
    terminal.resize
    terminal.close)
  "The methods of the server, as symbols.")

(defconst duet-protocol-kinds
  '("turn.state"
    "item.added"
    "item.changed"
    "text.delta"
    "thought.delta"
    "approval.opened"
    "approval.closed"
    "session.changed"
    "session.deleted"
    "queue.changed"
    "plan"
    "usage"
    "progress"
    "change.made"
    "change.decided"
    "agent.session"
    "agent.error"
    "agent.silent"
    "agent.update"
    "gate.iteration"
    "gate.started"
    "gate.result"
    "gate.ended"
    "trigger.fired"
    "build.progress"
    "terminal.output"
    "terminal.exited"
    "terminal.lagged"
    "secret.requested"
    "lagged"
    "log.damaged"
    "daemon.silent"
    "daemon.answers")
  "The kinds of events.")

(defconst duet-protocol-state-words
  '((cancelled . "interrupted")
    (completed . "completed")
    (discarded . "discarded")
    (draft . "draft")
    (failed . "failed")
    (interrupted . "interrupted")
    (interrupting . "interrupting")
    (queued . "queued")
    (running . "running")
    (starting . "starting")
    (timed_out . "timed out")
    (waiting_input . "waiting for you"))
  "The words for each state of a turn.")

(defconst duet-protocol-status-words
  '((pending . "open")
    (approved . "allowed")
    (denied . "denied")
    (responded . "answered")
    (expired . "expired")
    (cancelled . "withdrawn"))
  "The words for each status of an approval.")

(defconst duet-protocol-modes
  '(("default" . "Default")
    ("acceptEdits" . "Accept edits")
    ("plan" . "Plan")
    ("bypassPermissions" . "Bypass permissions"))
  "The names of Duet's permission modes, by their ids.")

(defconst duet-protocol-answers
  '((allow "y" "Allow" "The tool runs this once.")
    (deny "n" "Deny" "The tool does not run.")
    (tell "t" "Deny and say why" "The agent gets your reason.")
    (session "s" "Always in this session" "Such calls run without a question in this session.")
    (project "p" "Always in this project" "Such calls run without a question in this project.")
    (edit "e" "Edit" "You change what the tool gets, and then allow it.")
    (keys "?" "Keys" "Shows what the keys do."))
  "The ways to answer a question about a tool: name, key, words and meaning.")

(provide 'duet-protocol)
;;; duet-protocol.el ends here
