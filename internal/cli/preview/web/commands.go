package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// command is a command to pages: open an address, or reload.
type command struct {
	number   int64 // starts at 1
	navigate string
	refresh  bool
}

// Navigate makes all open pages go to an address.
func (s *Server) Navigate(path string) { s.send(command{navigate: path}) }

// Refresh makes all open pages reload.
func (s *Server) Refresh() { s.send(command{refresh: true}) }

func (s *Server) send(t command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.number = s.last.number + 1
	s.last = t
	for page := range s.pages {
		select {
		case page <- t:
		default: // the page is behind
		}
	}
}

// lastCommand returns the number of the latest command.
func (s *Server) lastCommand() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.number
}

// watch returns a channel with the commands after a number: the latest one, if it is newer,
// and all further ones.
func (s *Server) watch(after int64) (page chan command, leave func()) {
	page = make(chan command, 10)
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

// End ends the requests that would otherwise not end. Call it once.
func (s *Server) End() { close(s.ended) }

// streamCommands sends commands to a page as long as it is open, as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). The page sends the number
// of the latest command when it was loaded, so that it misses none.
func (s *Server) streamCommands(w http.ResponseWriter, r *http.Request) {
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
				return // encoding a string cannot fail
			}
			fmt.Fprintf(w, "id: %d\nevent: navigate\ndata: %s\n\n", t.number, address)
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}
