package domain

// fieldsSize is about how long the fields of a payload are together that are
// never long: ids, names, states.
const fieldsSize = 256

// Size is as of Payload.
func (p RunStateChanged) Size() int {
	n := fieldsSize + len(p.Title) + len(p.Error)
	for _, m := range p.SignIn {
		n += 64 + len(m.ID) + len(m.Name) + len(m.Description)
	}
	return n
}

// Size is as of Payload.
func (d MessageDelta) Size() int { return len(d.Key) + len(d.Text) + len(d.Meta) }

// Size is as of Payload.
func (p MessageAdded) Size() int {
	return fieldsSize + len(p.Text) + SizeOfBlocks(p.Blocks) + len(p.Meta)
}

// Size is as of Payload.
func (p ToolCallChanged) Size() int {
	details := 0
	if p.Details != nil {
		details = p.Details.Size()
	}
	return fieldsSize + len(p.Title) + len(p.Input) + details + len(p.Result)
}

// Size is as of Payload.
func (p ApprovalRequested) Size() int {
	return fieldsSize + len(p.Input) + len(p.Ambiguity) + len(p.Title) + len(p.Subject) + sizeOfOptions(p.Options) + SizeOfDiffs(p.Diffs) + len(p.Elicitation.Schema) + len(p.Elicitation.URL)
}

// Size is as of Payload.
func (p ApprovalResolved) Size() int {
	return fieldsSize + len(p.Response) + len(p.Comment) + len(p.Title)
}

// Size is as of Payload.
func (p SettingsChanged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p NativeSessionChanged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p AgentModeChanged) Size() int { return fieldsSize + sizeOf(p.Choices) }

// Size is as of Payload.
func (p PlanChanged) Size() int {
	return fieldsSize + Plan(p).Size()
}

// Size is as of Payload.
func (p UsageReported) Size() int { return fieldsSize + len(p.Meta) }

// Size is as of Payload.
func (p FileChanged) Size() int { return fieldsSize + len(p.Diff) }

// Size is as of Payload.
func (p ProgressReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentErrorReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentUpdated) Size() int { return fieldsSize + len(p.Update) }

// Size is as of Payload.
func (p AgentSilent) Size() int { return fieldsSize + len(p.Note) + len(p.Tool) }

// Size is as of Payload.
func (p TerminalPrinted) Size() int { return fieldsSize + len(p.Data) }

// Size is as of Payload.
func (p TerminalExited) Size() int { return fieldsSize }

// Size is as of Payload.
func (p TerminalLagged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p SecretRequested) Size() int { return fieldsSize }

// Size is as of Payload.
func (p Lagged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p LogDamaged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p ThreadDeleted) Size() int { return fieldsSize + len(p.Runs)*entrySize }

// Size is as of Payload.
func (p Erased) Size() int { return 0 }

// Size is as of Payload.
func (p Unreadable) Size() int { return fieldsSize }

// entrySize is about how long the fields of an entry of a list are together that
// are never long.
const entrySize = 64

// SizeOfDiffs is about how many bytes the texts of diffs are.
func SizeOfDiffs(diffs []Diff) (n int) {
	for _, d := range diffs {
		n += entrySize + len(d.Path) + len(d.NewText)
		if d.OldText != nil {
			n += len(*d.OldText)
		}
	}
	return n
}

func sizeOfOptions(options []Option) (n int) {
	for _, o := range options {
		n += entrySize + len(o.ID) + len(o.Name)
		for name, value := range o.Extra {
			n += len(name) + len(value)
		}
	}
	return n
}

// Size is as of ItemData.
func (d ToolDetails) Size() int {
	n := len(d.Terminal) + len(d.Refusal) + len(d.Meta) + SizeOfDiffs(d.Diffs) + SizeOfBlocks(d.Blocks)
	for _, p := range d.Paths {
		n += len(p) + 4
	}
	return n
}

// Size is as of ItemData.
func (c MessageContent) Size() int { return SizeOfBlocks(c.Blocks) + len(c.Meta) }

// Size is as of ItemData.
func (p Plan) Size() (n int) {
	for _, e := range p.Entries {
		n += entrySize + len(e.Content)
	}
	return n
}

// Size is as of ItemData.
func (n FileNote) Size() int { return fieldsSize + len(n.Path) }

// Size is as of ItemData.
func (n ApprovalNote) Size() int {
	return fieldsSize + len(n.Title) + len(n.Response) + len(n.Explanation) + len(n.Delivery)
}

// Size is about how many bytes its texts are.
func (s MCPServer) Size() int {
	n := entrySize + len(s.Name) + len(s.Command) + len(s.URL)
	for _, a := range s.Args {
		n += len(a)
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for name, value := range m {
			n += len(name) + len(value)
		}
	}
	return n
}
