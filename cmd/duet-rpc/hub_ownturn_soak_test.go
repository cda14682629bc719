//go:build soak && unix

package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What an agent says after its turn is kept as fast as what it says in one.
func TestChunksAfterATurnAreAsFast(t *testing.T) {
	const chunks, rounds = 100_000, 5
	s := newSite(t)
	c := s.start()
	c.subscribe()
	took := func(session string) time.Duration {
		var r struct {
			Session struct {
				Started   time.Time `json:"started_at"`
				Completed time.Time `json:"completed_at"`
			} `json:"session"`
		}
		c.call("getSessionState", object{"session_id": session}, &r)
		return r.Session.Completed.Sub(r.Session.Started)
	}
	var ratios []float64
	for round := range rounds {
		in := c.launch(fmt.Sprintf("quiet stream:%d", chunks), "")
		assert.Equal(t, "completed", c.awaitEnd(in.SessionID).Data.State)
		before := c.launch(fmt.Sprintf("late:%d", chunks), "")
		own := c.awaitOwnTurn(round + 1)
		assert.Equal(t, "completed", c.awaitEnd(own).Data.State)
		assert.Equal(t, "completed", c.session(before.SessionID).State)
		ratio := took(own).Seconds() / took(in.SessionID).Seconds()
		t.Logf("%d chunks: %v in a turn, %v after it, %.2f times as long", chunks, took(in.SessionID), took(own), ratio)
		ratios = append(ratios, ratio)
	}
	slices.Sort(ratios)
	t.Logf("chunks after the turn: %.2f times as long as in one (%.2f to %.2f)", ratios[rounds/2], ratios[0], ratios[rounds-1])
	assert.Less(t, ratios[rounds/2], 1.5)
	c.leave()
}
