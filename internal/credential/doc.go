// Package credential keeps what executors are trusted with: the session tokens by
// which they speak for runs ([Tokens]), and the API keys that their agents are
// given ([Keys]).
//
// Both are in memory alone. A token is known by its hash, and is good until its
// run ends. A key is known as long as there may be an agent that has it, so that it
// can be taken out of what that agent says; that somebody asked for it is noted in
// the database, the key itself never is.
package credential
