package main

// A listing is a call that must stay fast however much there is.
type listing struct {
	method string
	params func(sessions []listed, i int) map[string]any
	p99    *figure
}

// listed is what session.list tells of a session, as far as it is used here.
type listed struct {
	Turn    string `json:"turn"`
	Session int    `json:"session"`
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
func ofSession(method, notable, param string, id func(listed) any) listing {
	return listingOf(method, notable, func(sessions []listed, i int) map[string]any {
		return map[string]any{param: id(sessions[i%len(sessions)])}
	})
}

func bySession(s listed) any { return s.Session }
func byTurn(s listed) any    { return s.Turn }

var listings = []listing{
	newListing("session.list", "500 of them", nil),
	newListing("session.list", "limit 20", map[string]any{"limit": 20}),
	ofSession("session.get", "", "session", bySession),
	ofSession("session.items", "", "session", bySession),
	listingOf("session.items", "500 of them", func(sessions []listed, _ int) map[string]any {
		return map[string]any{"session": sessions[len(sessions)-1].Session, "limit": 500}
	}),
	newListing("session.search", "a word that is everywhere", map[string]any{"query": "flaky"}),
	newListing("session.search", "two words, in 20 entries", map[string]any{"query": "part 4711"}),
	newListing("session.search", "the beginning of a word", map[string]any{"query": "fla"}),
	newListing("turn.list", "limit 20", map[string]any{"limit": 20}),
	newListing("turn.list", "limit 1,000", map[string]any{"limit": 1000}),
	newListing("turn.list", "20 failed", map[string]any{"limit": 20, "states": []string{"failed"}}),
	newListing("turn.list", "running, of which there is none", map[string]any{"limit": 20, "states": []string{"running"}}),
	newListing("turn.list", "an agent that has none", map[string]any{"limit": 20, "agent": "demo"}),
	ofSession("turn.get", "", "turn", byTurn),
	newListing("turn.count", "", nil),
	ofSession("change.list", "", "turn", byTurn),
	newListing("approval.list", "100 of them", nil),
	ofSession("approval.list", "of a turn", "turn", byTurn),
	newListing("project.directories", "", nil),
	newListing("daemon.status", "", nil),
	// The dialects translate.
	newListing("getSessionLeaves", "500 of them, HumanLayer's", nil),
	newListing("task.list", "limit 20, AIWG's", nil),
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
