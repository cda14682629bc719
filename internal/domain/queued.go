package domain

// QueueChanged says that a queued run was edited, or has another place among the queued
// runs of its conversation.
type QueueChanged struct {
	Text      *string  // the new prompt; nil: as before
	Truncated bool     // Text is cut to [MaxEventText]
	Order     []string // SessionIDs of the conversation's queued runs, the next one first
}

// EventQueue is the kind of [QueueChanged].
const EventQueue EventKind = "run.queue"

// Kind is EventQueue.
func (QueueChanged) Kind() EventKind { return EventQueue }

// Size is as of Payload.
func (p QueueChanged) Size() int {
	size := fieldsSize
	if p.Text != nil {
		size += len(*p.Text)
	}
	for _, id := range p.Order {
		size += len(id)
	}
	return size
}
