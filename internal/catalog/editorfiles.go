package catalog

import "context"

// EditorFiles are files as the editors have them that began tasks: with what is not
// saved. Ours. Its method may be called from any goroutine.
type EditorFiles interface {
	// ReadEditorFile is taken of the executor alone that was given the task. Its
	// error says that there is nobody to ask.
	ReadEditorFile(context.Context, ReadEditorFileParams) (ReadEditorFileResult, error)
}

// ReadEditorFileParams ask for a file.
type ReadEditorFileParams struct {
	TaskID string `json:"task_id"`
	Path   string `json:"path" doc:"Absolute."`
}

// ReadEditorFileResult is the whole text of a file.
type ReadEditorFileResult struct {
	Found bool   `json:"found" doc:"False: the editor does not have it, and the disk counts."`
	Text  string `json:"text"`
}
