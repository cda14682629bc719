package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

var errOthersToken = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation, or of another task in it")

// speaker is what a session token stands for, with its run, which is nil if it has
// ended.
func (h *Hub) speaker(text string) (credential.Token, *liveRun, error) {
	token, err := h.tokens.Find(text)
	if err != nil {
		return token, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return token, h.live[token.Run], nil
}

// speakerOf is speaker for a token that is refused for the task of another
// run: task is any id of it, or "" where none is named.
func (h *Hub) speakerOf(ctx context.Context, text, task string) (credential.Token, *liveRun, error) {
	token, live, err := h.speaker(text)
	if err != nil || task == "" || live != nil && live.run.UUID == task { // nearly always
		return token, live, err
	}
	id, err := h.store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Run:
		return credential.Token{}, nil, errOthersToken
	case err != nil:
		return credential.Token{}, nil, stored(err)
	}
	return token, live, nil
}

// CheckTokenOf reports whether a token that a client sent is good for the
// conversation of a run or thread, which any of its ids names. "" is, for all.
func (h *Hub) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := h.tokens.Find(token)
	if err != nil {
		return err
	}
	s, err := h.query.Session(ctx, id)
	if err == nil && s.Run.Thread != known.Thread {
		err = errOthersToken
	}
	return err
}

// CheckToken reports whether a token that a client sent is good. Clients of
// our own user need none: "" is.
func (h *Hub) CheckToken(token string) error {
	if token == "" {
		return nil
	}
	_, err := h.tokens.Find(token)
	return err
}
