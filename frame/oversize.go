package frame

// A body that is too long is not kept, but whoever asked for something in it
// waits for an answer: so its beginning is read for the id of a request.

// idWithin is how far into a body that is too long its id is looked for, in
// bytes. Clients put the id before or right behind the method, and params last.
const idWithin = 4 << 10

// oversizeID is the id of the request in the body that begins at the current
// position, has n bytes and is too long; nil if it is none. It reads on until
// the beginning has told, but not through a silence: a peer that wants to hear
// of the length before it sends the body is answered too. Whatever else ends
// the wait is told again when the body is skipped.
func (s *lspSplitter) oversizeID(n int64) []byte {
	want := int(min(n, idWithin))
	for {
		head := s.in.Bytes()
		id, decided := requestAhead(head[:min(len(head), want)])
		if decided || len(head) >= want || s.in.more(inHead, want) != nil {
			return id
		}
	}
}

// oversizeLine is the refusal for a line that begins with head, as much of it
// as the limit allows.
func oversizeLine(head []byte, limit int) *Refusal {
	refusal := refuse(ReasonOversize, "the line is longer than the limit of %d bytes", limit)
	refusal.ID, _ = requestAhead(head[:min(len(head), limit, idWithin)])
	return refusal
}

// requestAhead finds the raw id of a request in the beginning of its body: a
// member of the message itself, whole, in an object that has shown to be a
// request by its method or params. It is nil for anything else: a batch, a
// notification, and also a response, whose id is one of ours. decided is false
// if a longer beginning might tell more.
func requestAhead(b []byte) (id []byte, decided bool) {
	i := skipSpace(b, 0)
	if i == len(b) {
		return nil, false
	}
	if b[i] != '{' {
		return nil, true
	}
	var m Message // for its names
	isRequest := false
	for {
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] != '"' {
			return nil, true
		}
		value := skipName(b, i)
		if value < 0 || value == len(b) {
			return nil, false
		}
		span := m.member(b[i:skipString(b, i+1)])
		switch span {
		case &m.Method:
			isRequest = isRequest || b[value] == '"'
		case &m.Params:
			isRequest = isRequest || b[value] == '{' || b[value] == '['
		case &m.Result, &m.Error:
			if !isRequest {
				return nil, true
			}
		}
		if isRequest && m.ID != nil {
			return m.ID, true
		}
		if i = skipValue(b, value, 1); i < 0 || i == len(b) { // at the end, a number may go on
			return nil, false
		}
		if span == &m.ID {
			if m.ID = b[value:i:i]; !ValidID(m.ID) {
				return nil, true
			}
			if isRequest {
				return m.ID, true
			}
		}
		if i = skipSpace(b, i); i == len(b) {
			return nil, false
		}
		if b[i] != ',' {
			return nil, true
		}
	}
}
