// Package protocol has the messages of the client protocol (docs/protocol.md): the parameters and
// results of each method, one file per family; the data of events (events.go, values.go); and the
// task notifications of AIWG's clients (tasks.go). Values that clients see unchanged have their
// types in package domain. Package handlers has the methods.
//
// sessions.go, approvals.go and conversation.go spell members as HumanLayer does, tasks.go as AIWG
// does. states.go has the words of both for the states of a run.
package protocol
