package main_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A script asks, waits, and knows by the exit status.
func TestAskingFromAScript(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	person := s.start()
	type outcome struct {
		out string
		err error
	}
	command := func(args ...string) chan outcome {
		ended := make(chan outcome, 1)
		go func() {
			out, err := s.command(args...)
			ended <- outcome{out, err}
		}()
		return ended
	}
	asked := command("ask", "Deploy?", "--option", "now", "--option", "later")
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "respond", "option": "later"}, nil)
	assert.Equal(t, outcome{"later\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "approve", "updated_input": object{"command": "make -n deploy"}}, nil)
	assert.Equal(t, outcome{`{"command":"make -n deploy"}` + "\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.call("sendDecision", object{"approval_id": person.open(anyQuestion).ID, "decision": "deny", "comment": "not today"}, nil)
	denied := <-asked
	var status *exec.ExitError
	require.True(t, errors.As(denied.err, &status), denied.err)
	assert.Equal(t, 3, status.ExitCode())
	assert.ErrorContains(t, denied.err, "Permission denied: not today")
	person.leave()
}
