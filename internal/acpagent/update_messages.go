package acpagent

import (
	"hash"
	"hash/fnv"
)

// messages know how much has been sent of each message that is being written. A
// client only ever adds to a message, so what was left out of the middle of one cannot
// be sent before the rest of it: that waits for the whole message.
type messages struct {
	open map[string]*messageUpdate
	// unsure: pieces were left out, perhaps the first ones of a message that is not
	// known yet.
	unsure bool
	// last is the message that was completed last, by its key: late text of an agent is added
	// to it, and it comes whole again.
	last    *messageUpdate
	lastKey string
}

// A messageUpdate is one that is being written.
type messageUpdate struct {
	sent   int         // bytes
	digest hash.Hash64 // of them
	held   bool        // something is missing behind them
}

func (m *messages) get(key string) *messageUpdate {
	if m.open == nil {
		m.open = make(map[string]*messageUpdate)
	}
	one := m.open[key]
	if one == nil && m.last != nil && key == m.lastKey {
		one = m.last
		m.open[key] = one
	}
	if one == nil {
		one = &messageUpdate{digest: fnv.New64a(), held: m.unsure}
		m.open[key] = one
	}
	return one
}

// piece is what is to be sent of a piece of a message.
func (m *messages) piece(key, text string) string {
	one := m.get(key)
	if one.held {
		return ""
	}
	one.add(text)
	return text
}

// whole is what is to be sent of a message that is complete: what was not sent yet.
func (m *messages) whole(key, text string) string {
	one := m.get(key)
	delete(m.open, key)
	m.unsure = false
	rest := one.rest(text)
	one.add(rest)
	one.held = false
	m.last, m.lastKey = one, key
	return rest
}

// ended notes a complete message that has been sent.
func (m *messages) ended(key, text string) {
	m.last, m.lastKey = &messageUpdate{digest: fnv.New64a()}, key
	m.last.add(text)
}

// began notes a message of which text has been sent and the rest will come with the
// whole of it.
func (m *messages) began(key, text string) {
	one := m.get(key)
	one.add(text)
	one.held = true
}

// leftOut notes that pieces were left out.
func (m *messages) leftOut() {
	m.unsure = true
	for _, one := range m.open {
		one.held = true
	}
}

// turnEnded forgets messages that were never completed.
func (m *messages) turnEnded() { m.open, m.unsure = nil, false }

func (o *messageUpdate) add(text string) {
	o.sent += len(text)
	o.digest.Write([]byte(text))
}

// rest is what is missing of a text; nothing where what was sent is no beginning of it:
// a key may have been taken out of it since.
func (o *messageUpdate) rest(text string) string {
	if o.sent == 0 {
		return text
	}
	if o.sent >= len(text) {
		return ""
	}
	begin := fnv.New64a()
	begin.Write([]byte(text[:o.sent]))
	if begin.Sum64() != o.digest.Sum64() {
		return ""
	}
	return text[o.sent:]
}
