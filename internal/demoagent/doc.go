// Package demoagent is a scripted coding agent without a model. It speaks the Agent Client
// Protocol (version 1 or 2) and follows words in the prompt, which [Help] lists: a plan, streamed
// text, an edit with a permission, a terminal, a question, and the faults of bad agents. It needs
// no account and no network.
//
// Sessions outlive the process: each is a small file in [Options.StateDir], which a client can
// load or resume.
package demoagent
