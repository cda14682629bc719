// Package testkit is for tests: golden files, parts of JSON messages, what other goroutines say and
// other processes do, and programs that a machine may lack.
package testkit
