package nativesession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
)

// How long an agent may take.
const (
	listTime = 30 * time.Second
	loadTime = 2 * time.Minute // of a long history
	endTime  = 2 * time.Second // to close a session
)

// maxID is how long the id of a session may be, in bytes.
const maxID = 500

// An asked agent is one that was started to be asked for its sessions.
type asked struct {
	*agentlink.Link
	name  string
	calls string // itself; "" if it does not say
}

func open(ctx context.Context, l agentlink.Launch, opts agentlink.Options) (*asked, error) {
	link, err := agentlink.Open(ctx, l, opts)
	if err != nil {
		return nil, err
	}
	name := ""
	if link.Info.Info != nil {
		name = link.Info.Info.Name
	}
	return &asked{link, l.Name, name}, nil
}

// A CannotError says that an agent does not offer what is wanted of it.
type CannotError struct{ Text string }

func (e *CannotError) Error() string { return e.Text }

// ErrSignedOut says that an agent wants somebody to sign in first.
var ErrSignedOut = errors.New("nobody is signed in")

// explained is an error of an agent with what to do about it.
func explained(name string, err error) error {
	var refused *agentlink.Refusal
	if errors.As(err, &refused) && refused.Wire.Code == acp.CodeAuthRequired {
		return fmt.Errorf("%w: %w; sign in with `duet-rpc agents login %s`", err, ErrSignedOut, name)
	}
	return err
}

// Delete has an agent delete a session of its own.
func Delete(ctx context.Context, l agentlink.Launch, id string, log *slog.Logger) error {
	k, err := open(ctx, l, agentlink.Options{Logger: log})
	if err != nil {
		return err
	}
	defer k.Close()
	if !acp.Has(k.Info.Session.Delete) {
		return &CannotError{l.Name + " cannot be told to delete its sessions: use its own program, or delete its files"}
	}
	_, err = agentlink.Ask[json.RawMessage](ctx, k.Link, listTime, "session/delete", map[string]any{"sessionId": id})
	return explained(l.Name, err)
}
