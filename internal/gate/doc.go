// Package gate keeps agents at work until commands pass: its gates are checked after each
// run that completes, and what has failed is the next prompt of the conversation, until all
// pass or as many runs have been as there may be.
//
// Such work is a [domain.GateLoop]. Where it stands is in the store, and changes together
// with the states of its runs: a hub that dies leaves a loop that waits for its checks, which
// the next hub makes again from the first gate on, or one whose run was interrupted, which
// goes on when that run is continued.
package gate
