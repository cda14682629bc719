// Package output prints what commands have found: tables, fields, and JSON. What
// others wrote (agents, files of a project, a log) is printed so that every
// character of it can be seen and none steers the terminal.
package output
