package intake

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestRefusalsAreCounted(t *testing.T) {
	var r refusals
	assert.Equal(t, completed, r.judge(completed))
	r.add(errors.New("first"))
	assert.Contains(t, r.judge(completed).Error.Message, "but a report of it could not be stored")
	r.add(errors.New("second"))
	assert.Contains(t, r.judge(completed).Error.Message, "2 reports of it could not be stored, so output is missing here (first)")
	cancelled := catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	assert.Equal(t, cancelled, r.judge(cancelled))
	failed := catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "OWN", Message: "own"}}
	assert.Equal(t, failed, r.judge(failed))
}

func TestACompletionIsKept(t *testing.T) {
	d := newDesk(t)
	assert.Nil(t, d.turn.Completion())
	assert.NoError(t, d.ReportCompletion(t.Context(), catalog.ReportCompletionParams{SessionToken: token, Status: catalog.StatusCancelled}))
	assert.Equal(t, catalog.StatusCancelled, d.turn.Completion().Status)
}
