//go:build linux && soak

package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at returns the call with its start and its end in seconds.
func (c call) at(from, until int) call {
	c.From, c.Until = time.Duration(from)*time.Second, time.Duration(until)*time.Second
	return c
}

func decides(who int, outcome, status, words string) call {
	return call{Approval: "q", Who: who, What: callDecide, Outcome: outcome, Write: answer{status, words}}
}

func loses(who int, status string) call {
	return call{Approval: "q", Who: who, What: callDecide, Outcome: lost, Write: answer{"approved", "mine"}, Read: answer{Status: status}}
}

func reads(who int, status, words string) call {
	return call{Approval: "q", Who: who, What: callRead, Read: answer{status, words}}
}

// The model accepts the histories of a write-once register, and rejects others.
func TestQuestionModel(t *testing.T) {
	t.Parallel()
	human := func(status, words string) questionEvent {
		return questionEvent{byHuman: true, answer: answer{status, words}}
	}
	for _, test := range []struct {
		name   string
		calls  []call
		events []questionEvent
		want   porcupine.CheckResult
	}{
		{"one answers, one is too late", []call{
			reads(1, "pending", "").at(0, 1), decides(1, won, "approved", "a").at(1, 3), loses(2, "approved").at(2, 4), reads(3, "approved", "a").at(5, 6),
		}, nil, porcupine.Ok},
		{"two win", []call{decides(1, won, "approved", "a").at(0, 3), decides(2, won, "approved", "b").at(1, 4)}, nil, porcupine.Illegal},
		{"too late without a winner", []call{loses(1, "approved").at(0, 1), decides(2, won, "approved", "a").at(2, 3)}, nil, porcupine.Illegal},
		{"too late, with another winner", []call{decides(1, won, "approved", "a").at(0, 1), loses(2, "denied").at(2, 3)}, nil, porcupine.Illegal},
		{"an answer that is forgotten", []call{decides(1, won, "approved", "a").at(0, 1), reads(2, "pending", "").at(2, 3)}, nil, porcupine.Illegal},
		{"an answer of another person", []call{decides(1, won, "approved", "a").at(0, 1), reads(2, "approved", "b").at(2, 3)}, nil, porcupine.Illegal},
		{"read before it was given", []call{reads(1, "approved", "a").at(0, 1), decides(2, won, "approved", "a").at(2, 3)}, nil, porcupine.Illegal},

		{
			"no reply, and it counted",
			[]call{decides(1, unknown, "approved", "a").at(0, 1), loses(2, "approved").at(3, 4), reads(2, "approved", "a").at(5, 6)},
			[]questionEvent{human("approved", "a")},
			porcupine.Ok,
		},
		{
			"no reply, and it counted much later",
			[]call{decides(1, unknown, "approved", "a").at(0, 1), reads(2, "pending", "").at(5, 6)},
			[]questionEvent{human("approved", "a")},
			porcupine.Ok,
		},
		{
			"no reply, and it did not count",
			[]call{decides(1, unknown, "approved", "a").at(0, 1), decides(2, won, "denied", "b").at(2, 3)},
			[]questionEvent{human("denied", "b")},
			porcupine.Ok,
		},
		{
			"no reply, no event, but there",
			[]call{decides(1, unknown, "approved", "a").at(0, 1), reads(2, "approved", "a").at(2, 3)},
			nil,
			porcupine.Illegal,
		},

		{
			"closed by the hub",
			[]call{loses(1, "cancelled").at(5, 6), reads(1, "cancelled", "").at(7, 8)},
			[]questionEvent{{answer: answer{Status: "cancelled"}, from: time.Second, until: 4 * time.Second}},
			porcupine.Ok,
		},
		{
			"closed by the hub over an answer",
			[]call{decides(1, won, "approved", "a").at(0, 1)},
			[]questionEvent{human("approved", "a"), {answer: answer{Status: "cancelled"}, from: 2 * time.Second, until: 4 * time.Second}},
			porcupine.Illegal,
		},

		{
			"answered again",
			[]call{decides(1, won, "approved", "a").at(0, 1), decides(2, won, "denied", "b").at(7, 8)},
			[]questionEvent{human("approved", "a"), human("denied", "b")},
			porcupine.Illegal,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			picture := filepath.Join(t.TempDir(), "picture.html")
			result, err := linearize(settle(test.calls, test.events), picture)
			require.NoError(t, err)
			assert.Equal(t, test.want, result)
			if result == porcupine.Illegal {
				assert.FileExists(t, picture)
			}
		})
	}
}
