package sessionview

import "strings"

// NoSession says what it means that no session is listed, and what to do about it.
func NoSession(status, agent string, archived bool) string {
	switch which := asked(status, agent); {
	case archived:
		return "no session is archived" + which + ": `duet-rpc session archive ID` puts one away"
	case which != "":
		return "there is no session" + which + ": `duet-rpc session list` lists them all"
	}
	return "there is no session here yet, or all are archived: `duet-rpc prompt \"…\"` begins one"
}

// NoTask says what it means that no task is listed, and what to do about it.
func NoTask(state, agent string) string {
	if which := asked(state, agent); which != "" {
		return "there is no task" + which + ": `duet-rpc task list` lists them all"
	}
	return "there is no task here yet: `duet-rpc prompt \"…\"` begins one"
}

// asked says which ones were asked for.
func asked(state, agent string) string {
	var parts []string
	if state != "" {
		parts = append(parts, " in the state "+state)
	}
	if agent != "" {
		parts = append(parts, " of "+agent)
	}
	return strings.Join(parts, "")
}
