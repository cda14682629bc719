package web

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// told is where pages are to go: an address, or the same once more.
type told struct {
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
	for page := range s.pages {
		select {
		case page <- t:
		default: // it has enough to do
		}
	}
}

// End ends the requests that would not end by themselves. It is called once.
func (s *Server) End() { close(s.ended) }

// tellOn tells a page where to go, as long as it is open: server-sent events, as
// https://html.spec.whatwg.org/multipage/server-sent-events.html has them.
func (s *Server) tellOn(w http.ResponseWriter, r *http.Request) {
	page := make(chan told, 10)
	s.mu.Lock()
	s.pages[page] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pages, page)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	fmt.Fprint(w, ": duet\n\n")
	for flush() == nil {
		select {
		case t := <-page:
			if t.refresh {
				fmt.Fprint(w, "event: refresh\ndata: \n\n")
				continue
			}
			address, _ := json.Marshal(t.navigate)
			fmt.Fprintf(w, "event: navigate\ndata: %s\n\n", address)
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}
