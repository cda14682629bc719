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
    task.submit
    task.cancel
    task.list
    task.get
    task.stats
    usage.get
    chat.send
    daemon.status
    daemon.listen
    daemon.stop
    project.list
    project.keep
    project.move
    project.forget
    trigger.list
    trigger.enable
    trigger.disable
    trigger.log
    trigger.test
    automation.status
    automation.enable
    automation.disable
    editor.offer
    editor.saved
    editor.call
    attempt.start
    attempt.list
    attempt.choose
    launchSession
    listSessions
    getSessionState
    getSessionLeaves
    continueSession
    interruptSession
    updateSessionSettings
    updateSessionTitle
    archiveSession
    bulkArchiveSessions
    getRecentPaths
    session.start
    session.prompt
    session.fork
    session.list
    session.get
    session.rename
    session.archive
    session.delete
    session.land
    session.discard
    turn.list
    turn.get
    turn.interrupt
    turn.edit
    turn.move
    session.set
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
    build
    buildBackend
    gate.list
    gate.check
    getConversation
    session.items
    session.search
    session.export
    change.list
    change.accept
    change.revert
    change.reopen
    session.rewind
    getSessionSnapshots
    attachment.get
    createApproval
    fetchApprovals
    getApproval
    sendDecision
    approval.list
    approval.get
    approval.decide
    rule.list
    rule.delete
    askUser
    requestPermission
    sendTask
    cancelTask
    mcp.servers
    mcp.tools
    mcp.call
    fetch
    navigate
    refresh
    console
    error
    updateNavigationState
    preview.messages
    event.subscribe
    event.unsubscribe
    Subscribe
    Unsubscribe
    execute_prompt
    stop_task
    cancel_task
    create_message
    secret.provide
    spawn_terminal
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

(provide 'duet-protocol)
;;; duet-protocol.el ends here
