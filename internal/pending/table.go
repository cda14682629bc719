// Package pending tracks requests that wait for responses.
//
// A [Table] holds its owner's data about each request, by id and in order; the owner's lock guards
// it. [Calls] are outgoing requests of this process; a goroutine waits for each.
package pending

import "iter"

// Table holds a T for each waiting request, by its raw JSON id. A peer may wrongly use an id twice;
// the older request is then answered first. The zero value is empty. A Table has no lock.
type Table[T any] struct {
	byID        map[string]*entry[T] // the oldest one of each id
	first, last *entry[T]            // in order of arrival
	count       int
}

type entry[T any] struct {
	id           string
	value        T
	older, newer *entry[T]
	sameID       *entry[T] // the next younger one with the same id
	lastSameID   *entry[T] // of the oldest one of an id: the youngest with that id
}

// Len returns the number of waiting requests.
func (t *Table[T]) Len() int { return t.count }

// Add adds a request, as the youngest.
func (t *Table[T]) Add(id []byte, value T) { t.add(&entry[T]{id: string(id), value: value}) }

func (t *Table[T]) add(e *entry[T]) {
	if t.byID == nil {
		t.byID = make(map[string]*entry[T])
	}
	t.count++
	e.older, e.newer, e.sameID, e.lastSameID = t.last, nil, nil, e
	if t.last == nil {
		t.first = e
	} else {
		t.last.newer = e
	}
	t.last = e
	oldest, clash := t.byID[e.id]
	if !clash {
		t.byID[e.id] = e
		return
	}
	oldest.lastSameID.sameID = e
	oldest.lastSameID = e
}

// Take removes the oldest request with that id and returns its value.
func (t *Table[T]) Take(id []byte) (value T, ok bool) {
	e, ok := t.byID[string(id)]
	if !ok {
		return value, false
	}
	t.remove(e)
	return e.value, true
}

// remove removes the oldest request with its id.
func (t *Table[T]) remove(e *entry[T]) {
	t.count--
	if e.sameID == nil {
		delete(t.byID, e.id)
	} else {
		e.sameID.lastSameID = e.lastSameID
		t.byID[e.id] = e.sameID
	}
	if e.older == nil {
		t.first = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		t.last = e.older
	} else {
		e.newer.older = e.older
	}
}

// All yields the ids and values of the requests, the oldest first. The loop may change values, but
// not the Table.
func (t *Table[T]) All() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for e := t.first; e != nil; e = e.newer {
			if !yield(e.id, &e.value) {
				return
			}
		}
	}
}

// DeleteFunc removes the requests for which del returns true.
func (t *Table[T]) DeleteFunc(del func(*T) bool) {
	e := t.first
	t.Clear()
	for e != nil {
		next := e.newer
		if !del(&e.value) {
			t.add(e)
		}
		e = next
	}
}

// Clear removes all requests.
func (t *Table[T]) Clear() {
	clear(t.byID)
	t.first, t.last, t.count = nil, nil, 0
}
