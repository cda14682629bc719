package executorcall

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

var errOthersToken = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation, or of another task in it")

// TokenOf is what a session token stands for. It is refused for the task of another
// run: task is any id of one, or "" where none is named. Errors are of
// [domain.KindInvalidToken].
func (c *Calls) TokenOf(ctx context.Context, text, task string) (credential.Token, error) {
	token, err := c.opts.Tokens.Find(text)
	if err != nil || task == "" || task == token.Task { // nearly always
		return token, err
	}
	id, err := c.opts.Store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Run:
		return credential.Token{}, errOthersToken
	case err != nil:
		return credential.Token{}, store.Explain(err)
	}
	return token, nil
}

// CheckTokenOf reports whether a token that a client sent is good for the
// conversation of a run or thread, which any of its ids names. "" is, for all.
func (c *Calls) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := c.opts.Tokens.Find(token)
	if err != nil {
		return err
	}
	s, err := c.opts.Query.Session(ctx, id)
	if err == nil && s.Run.Thread != known.Thread {
		err = errOthersToken
	}
	return err
}

// CheckToken reports whether a token that a client sent is good. Clients of
// our own user need none: "" is.
func (c *Calls) CheckToken(token string) error {
	if token == "" {
		return nil
	}
	_, err := c.opts.Tokens.Find(token)
	return err
}
