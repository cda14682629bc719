// Package gate keeps agents working until commands pass. Gates are checked after each completed
// run. The failures become the next prompt of the conversation, until all gates pass or the limit
// of runs is reached.
//
// A [domain.GateLoop] is stored, and changes in the same transactions as the states of its runs.
// After a crash, the next hub repeats a pending check from the first gate. A loop whose run was
// interrupted continues when the run is continued.
package gate
