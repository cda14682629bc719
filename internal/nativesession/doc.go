// Package nativesession asks an agent for the sessions that it keeps itself, however
// they were begun: which there are, what was said and done in one, to delete one. It
// starts the agent for that, outside of any conversation, and ends it.
//
// What agents advertise and answer is described on
// https://agentclientprotocol.com/protocol/v1/session-list.
package nativesession
