package mcpservers

// A recent set has the values that were added last, so many at the most.
type recent[T comparable] struct {
	most  int
	known map[T]struct{}
	order []T // a ring, once it is full
	next  int
}

func newRecent[T comparable](most int) *recent[T] {
	return &recent[T]{most: most, known: make(map[T]struct{})}
}

func (r *recent[T]) has(value T) bool {
	_, ok := r.known[value]
	return ok
}

// add adds a value, and forgets the oldest one where there are too many.
func (r *recent[T]) add(value T) {
	if r.has(value) {
		return
	}
	r.known[value] = struct{}{}
	if len(r.order) < r.most {
		r.order = append(r.order, value)
		return
	}
	delete(r.known, r.order[r.next])
	r.order[r.next] = value
	r.next = (r.next + 1) % r.most
}
