package frame

// An lspSplitter finds the bodies of a stream of LSP framing.
type lspSplitter struct {
	in *Input // of the call of Next under way

	state    state
	fields   int       // atFrame, longHeader: how much of the unread bytes is known to be whole header lines
	skipLeft int64     // skippingBody: what is left of it
	maxSkip  int64     // a constant but in tests
	line     lineState // longHeader, resyncing: the line that the unread bytes are in
}

// state is where in the stream a splitter is.
type state uint8

const (
	atFrame      state = iota // a frame, or a blank line, begins
	skippingBody              // inside a body that was refused
	longHeader                // inside a header section that was refused as too large
	resyncing                 // looking for the next header
)

// lineState tells what a splitter remembers of the line it is in after it
// dropped that line's beginning.
type lineState struct {
	cut      bool // the beginning was dropped
	hadColon bool // and had a colon in it
}

// drop uses n bytes up.
func (s *lspSplitter) drop(n int) {
	s.in.Discard(n)
	if s.fields > 0 {
		s.fields = max(0, s.fields-n)
	}
}

// dropAll uses up what has come.
func (s *lspSplitter) dropAll() { s.drop(len(s.in.Bytes())) }

// enter goes to a state that begins at a line's beginning, as far as anybody
// can tell.
func (s *lspSplitter) enter(next state) {
	s.state = next
	s.line = lineState{}
	s.in.EndFrame()
}

// timedOut drops what came of a frame that took too long.
func (s *lspSplitter) timedOut() {
	s.dropAll()
	s.enter(resyncing)
}

// NotJSON looks for a header: nobody can tell whether the body was what it
// claimed to be, or its length was wrong.
func (s *lspSplitter) NotJSON() { s.enter(resyncing) }
