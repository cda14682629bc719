package main

// A listing is a call that must stay fast however much there is.
type listing struct {
	method string
	params func(sessions []listed, i int) map[string]any
	p99    *figure
}

// listed is what listSessions tells of a session, as far as it is used here.
type listed struct {
	ID     string `json:"id"`
	TaskID string `json:"task_id"`
	Native string `json:"claude_session_id"`
}

// newListing makes a listing whose params are the same in each call.
func newListing(method, notable string, params map[string]any) listing {
	return listingOf(method, notable, func([]listed, int) map[string]any { return params })
}

func listingOf(method, notable string, params func([]listed, int) map[string]any) listing {
	name := method
	if notable != "" {
		name += ", " + notable
	}
	return listing{method, params, cost(name+", p99", milliseconds)}
}

// ofSession is a listing about one session after the other.
func ofSession(method, notable, param string, id func(listed) string) listing {
	return listingOf(method, notable, func(sessions []listed, i int) map[string]any {
		return map[string]any{param: id(sessions[i%len(sessions)])}
	})
}

func byID(s listed) string     { return s.ID }
func byTask(s listed) string   { return s.TaskID }
func byNative(s listed) string { return s.Native }

var listings = []listing{
	newListing("task.list", "", nil),
	newListing("task.list", "limit 1,000", map[string]any{"limit": 1000}),
	newListing("task.list", "20 failed", map[string]any{"state": "failed"}),
	newListing("task.list", "running, of which there is none", map[string]any{"state": "running"}),
	newListing("task.list", "an agent that has none", map[string]any{"agent": "demo"}),
	ofSession("task.get", "", "taskId", byTask),
	newListing("task.stats", "", nil),
	newListing("listSessions", "", nil),
	newListing("listSessions", "limit 20", map[string]any{"limit": 20}),
	newListing("getSessionLeaves", "", nil),
	ofSession("getSessionState", "", "session_id", byID),
	ofSession("getConversation", "", "session_id", byID),
	ofSession("getConversation", "by claude_session_id", "claude_session_id", byNative),
	listingOf("getConversation", "500 entries", func(sessions []listed, _ int) map[string]any {
		return map[string]any{"session_id": sessions[len(sessions)-1].ID}
	}),
	ofSession("getSessionSnapshots", "", "session_id", byID),
	newListing("fetchApprovals", "100 of them", nil),
	ofSession("fetchApprovals", "of a session", "session_id", byID),
	newListing("getRecentPaths", "", nil),
	newListing("session.search", "a word that is everywhere", map[string]any{"query": "flaky"}),
	newListing("session.search", "two words, in 20 entries", map[string]any{"query": "part 4711"}),
	newListing("session.search", "the beginning of a word", map[string]any{"query": "fla"}),
	newListing("daemon.status", "", nil),
}

var sinceFirst = cost("event.subscribe since 100 events ago → first event, p99", milliseconds)

func listingFigures() []*figure {
	var list []*figure
	for _, l := range listings {
		list = append(list, l.p99)
	}
	return append(list, sinceFirst)
}

// listingTargets are their targets.
func listingTargets() []target {
	var list []target
	for _, f := range listingFigures() {
		list = append(list, target{f, nowhere, 50, ""})
	}
	return list
}
