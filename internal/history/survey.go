package history

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Survey tells what a database holds. All texts in it are as they were found.
type Survey struct {
	domain.Tally
	Newest []Conversation
}

// A Conversation is a part of a survey.
type Conversation struct {
	Title  string    `json:"title"` // or the beginning of the first prompt
	Agent  string    `json:"agent"`
	Active time.Time `json:"last_activity_at"`
	Runs   int       `json:"sessions"`
}

// shownMost is how many conversations a survey shows, and titleShown how much
// of their titles, in bytes.
const (
	shownMost  = 10
	titleShown = 200
)

// Look surveys a database.
func Look(ctx context.Context, from Source) (s Survey, err error) {
	if s.Tally, err = from.Tally(ctx); err != nil {
		return s, err
	}
	threads, err := from.NewestThreads(ctx, shownMost)
	if err != nil {
		return s, err
	}
	mended := 0
	v := values{now: time.Now(), mended: &mended}
	for _, t := range threads {
		runs, err := from.RunsOfThread(ctx, t.ID, 0)
		if err != nil {
			return s, err
		}
		title := t.Title
		if title == "" && len(runs) > 0 {
			title = runs[0].Prompt
		}
		s.Newest = append(s.Newest, Conversation{Title: v.text(title, titleShown), Agent: v.text(t.Agent, nameMost), Active: t.Active, Runs: len(runs)})
	}
	return s, nil
}
