package frame

// SetMaxSkip changes how long a body is skipped by counting, so that a test
// need not feed a gigabyte.
func (r *Reader) SetMaxSkip(n int) { r.splitter.(*lspSplitter).maxSkip = int64(n) }
