// Package credential manages the credentials of executors: session tokens, with which they act for
// runs ([Tokens]), and API keys for their agents ([Keys]).
//
// Both are kept in memory only. A token is stored as a hash, and is valid until its run ends. A key
// is remembered as long as an agent may have it, to redact it from that agent's output. The
// database records requests for keys, never the keys.
package credential
