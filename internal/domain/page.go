package domain

import "time"

// Values of PageMessage.Kind.
const (
	PageConsole    = "console"
	PageError      = "error"
	PageNavigation = "navigation"
)

// A PageMessage is what a page of a preview has said.
type PageMessage struct {
	ID      int64
	Kind    string // one of the Page constants
	Level   string // of PageConsole: log, debug, info, warn or error
	Text    string // of PageNavigation: the title of the page
	URL     string // of the page; of PageError where it went wrong
	Line    int    // 0: unknown
	Column  int
	Stack   string
	Thread  int64     // the conversation that it was said in, 0 where there was none
	Run     int64     // its run, or 0
	Session string    // of the run; read only
	Count   int       // how often it was said, one after the other
	Time    time.Time // when it was said last
}

// Same reports whether another message says the same.
func (m PageMessage) Same(n PageMessage) bool {
	m.ID, m.Count, m.Time, m.Session = n.ID, n.Count, n.Time, n.Session
	return m == n
}

// A PageFilter says which messages of pages are meant.
type PageFilter struct {
	Thread, Run int64 // 0: all
	Problems    bool  // only errors, and what is said at the levels warn and error
	After       int64 // those with a higher ID
	Limit       int   // the last ones
}
