// Package statement runs SQL and checks what it reads: each statement is prepared
// once, each text is UTF-8, JSON is JSON, and an error of SQLite is one of those of
// package store. It knows no table.
package statement
