// Package domain has the values of the whole program: conversations (threads) and their runs,
// items, approvals, events, and the table of run states. It imports nothing of this module.
//
// Tags name the column of a field (db) and its member in JSON (json), both in the database and,
// where clients see the value itself, on the wire. Raw JSON in a value is third-party text,
// such as a tool's input; it is kept as it came.
package domain
