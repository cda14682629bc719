package protocol

// An ExportFormat is the form of an exported session.
type ExportFormat string

// The formats.
const (
	ExportMarkdown ExportFormat = "md"
	ExportJSON     ExportFormat = "json"
)

// Accepted implements schema.Enum.
func (ExportFormat) Accepted() []string {
	return []string{"", string(ExportMarkdown), string(ExportJSON)}
}

type ExportParams struct {
	Session Ref          `json:"session,omitempty" doc:"The session, as for session.items. This or turn is required."`
	Turn    Ref          `json:"turn,omitempty" doc:"In place of session: only this turn."`
	Format  ExportFormat `json:"format,omitempty" doc:"md: Markdown. json: the object of docs/export.md. Default: md."`
	After   string       `json:"after,omitempty" doc:"The next of the part before."`
}

func (p ExportParams) Check() error { return sessionOrTurn(p.Session, p.Turn) }

// An Exported is a part of a document.
type Exported struct {
	Text string `json:"text" doc:"The document is the concatenation of the texts of all parts."`
	Next string `json:"next,omitempty" doc:"Present if there is more: pass it as after."`
}
