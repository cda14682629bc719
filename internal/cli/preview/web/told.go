package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// told is where pages are to go: an address, or the same once more.
type told struct {
	number   int64 // 1 is the first
	navigate string
	refresh  bool
}

// Navigate has all pages that are open go to an address.
func (s *Server) Navigate(path string) { s.tell(told{navigate: path}) }

// Refresh has all pages that are open load again.
func (s *Server) Refresh() { s.tell(told{refresh: true}) }

func (s *Server) tell(t told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.number = s.last.number + 1
	s.last = t
	for page := range s.pages {
		select {
		case page <- t:
		default: // it has enough to do
		}
	}
}

// lastTold is the number of what pages were told last.
func (s *Server) lastTold() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.number
}

// watch makes a channel that gets what pages are told after a number: what came last
// before that page asked, and all that comes.
func (s *Server) watch(after int64) (page chan told, leave func()) {
	page = make(chan told, 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.number > after {
		page <- s.last
	}
	s.pages[page] = true
	return page, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pages, page)
	}
}

// End ends the requests that would not end by themselves. It is called once.
func (s *Server) End() { close(s.ended) }

// tellOn tells a page where to go, as long as it is open: server-sent events, as
// https://html.spec.whatwg.org/multipage/server-sent-events.html has them. The page says
// what had been told when it was loaded, so that nothing is lost until it asks.
func (s *Server) tellOn(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")), 10, 64)
	if err != nil {
		http.Error(w, "after has to be a number", http.StatusBadRequest)
		return
	}
	page, leave := s.watch(after)
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	fmt.Fprint(w, ": duet\n\n")
	for flush() == nil {
		select {
		case t := <-page:
			if t.refresh {
				fmt.Fprintf(w, "id: %d\nevent: refresh\ndata: now\n\n", t.number)
				continue
			}
			address, err := json.Marshal(t.navigate)
			if err != nil {
				return // there is no such string
			}
			fmt.Fprintf(w, "id: %d\nevent: navigate\ndata: %s\n\n", t.number, address)
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}
