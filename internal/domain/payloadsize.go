package domain

// fieldsSize is about how long the fields of a payload are together that are
// never long: ids, names, states.
const fieldsSize = 256

// Size is as of Payload.
func (p RunStateChanged) Size() int { return fieldsSize + len(p.Title) + len(p.Error) }

// Size is as of Payload.
func (d MessageDelta) Size() int { return len(d.Key) + len(d.Text) }

// Size is as of Payload.
func (p MessageAdded) Size() int { return fieldsSize + len(p.Text) }

// Size is as of Payload.
func (p ToolCallChanged) Size() int {
	return fieldsSize + len(p.Title) + len(p.Input) + len(p.Details) + len(p.Result)
}

// Size is as of Payload.
func (p ApprovalRequested) Size() int {
	return fieldsSize + len(p.Input) + len(p.Ambiguity) + len(p.Title) + len(p.Subject) + len(p.Options) + len(p.Diffs)
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
	n := fieldsSize
	for _, e := range p.Entries {
		n += 64 + len(e.Content)
	}
	return n
}

// Size is as of Payload.
func (p UsageReported) Size() int { return fieldsSize }

// Size is as of Payload.
func (p FileChanged) Size() int { return fieldsSize + len(p.Diff) }

// Size is as of Payload.
func (p ProgressReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentErrorReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentUpdated) Size() int { return fieldsSize + len(p.Update) }

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
func (p Unreadable) Size() int { return fieldsSize }
