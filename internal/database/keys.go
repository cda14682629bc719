package database

import (
	"context"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// A KeyAccess is that an agent asked for the API key of a service.
type KeyAccess struct {
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	Service   string    `json:"service"`
	Outcome   string    `json:"outcome"` // where the key came from, or why there was none; in words
}

// KeyAccesses lists the last times that agents of the project asked for API keys,
// the newest first, without changing the database; a hub may use it meanwhile. Of a
// database that is not the user's own nothing is read.
func KeyAccesses(ctx context.Context, p project.Project, limit int) ([]KeyAccess, error) {
	found, err := Look(ctx, p)
	if err != nil {
		return nil, err
	}
	list := []KeyAccess{}
	switch found.Kind {
	case origin.None:
		return list, nil
	case origin.Ours, origin.Moved:
	default:
		return nil, fmt.Errorf("%s is not in use, so nothing was read; see `duet-rpc doctor`", p.Database())
	}
	accesses, err := sqlite.KeyAccesses(ctx, p.Database(), limit)
	if err != nil {
		return nil, err
	}
	for _, a := range accesses {
		list = append(list, KeyAccess{At: a.At, SessionID: a.SessionID, Service: a.Service, Outcome: a.Outcome})
	}
	return list, nil
}
