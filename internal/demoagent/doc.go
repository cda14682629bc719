// Package demoagent is a coding agent without a model: it speaks the Agent
// Client Protocol (version 1 or 2, lines of JSON) and does what words in the prompt
// tell it to. It shows everything a real agent shows - a plan, streamed text,
// an edit that asks permission, a terminal, a question - and everything a bad
// one does, on a machine without an account or a network. [Help] lists the
// words; the table in keywords.go is the one place where they stand. It is written for
// version 1; version2.go translates for a client that asks for version 2.
//
// Its sessions outlive the process: each is a small file in
// [Options.StateDir], so that a client can load or resume it, and have a turn
// that was cut short continued.
package demoagent
