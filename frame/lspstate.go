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

// state is the position of a splitter in the stream.
type state uint8

const (
	atFrame      state = iota // at the beginning of a frame or a blank line
	skippingBody              // inside a refused body
	longHeader                // inside a header section that was refused as too large
	resyncing                 // looking for the next header
)

// lineState is what a splitter remembers of the current line after it dropped the beginning of
// that line.
type lineState struct {
	cut      bool // the beginning was dropped
	hadColon bool // the dropped part had a colon
}

// drop uses n bytes up.
func (s *lspSplitter) drop(n int) {
	s.in.Discard(n)
	if s.fields > 0 {
		s.fields = max(0, s.fields-n)
	}
}

// dropAll uses up all unread bytes.
func (s *lspSplitter) dropAll() { s.drop(len(s.in.Bytes())) }

// enter changes to a state that assumes the beginning of a line.
func (s *lspSplitter) enter(next state) {
	s.state = next
	s.line = lineState{}
	s.in.EndFrame()
}

// timedOut drops the received part of a frame that took too long.
func (s *lspSplitter) timedOut() {
	s.dropAll()
	s.enter(resyncing)
}

// NotJSON looks for a header: the body may have been wrong, or its length.
func (s *lspSplitter) NotJSON() { s.enter(resyncing) }
