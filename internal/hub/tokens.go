package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"maps"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

var (
	errInvalidToken = domain.Errorf(domain.KindInvalidToken, "the session token is unknown, or its run has ended")
	errOthersToken  = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation, or of another task in it")
)

// newToken makes the token by which an executor speaks for a run: 256 random
// bits, of which only a hash is kept. It is good until the run ends, however
// long that waits for a human.
func (h *Hub) newToken(t store.Tx, run domain.Run) (string, error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	text := hex.EncodeToString(secret)
	hash := sha256.Sum256([]byte(text))
	token := domain.Token{Hash: hash[:], Thread: run.Thread, Run: run.ID}
	if err := t.PutToken(token); err != nil {
		return "", err
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tokens[hash] = token
	})
	return text, nil
}

// dropTokens forgets the tokens of a run whose executor has answered.
func (h *Hub) dropTokens(run int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.tokens, func(_ [32]byte, token domain.Token) bool { return token.Run == run })
}

// token finds what a token stands for.
func (h *Hub) token(text string) (domain.Token, error) {
	token, _, err := h.speaker(text)
	return token, err
}

// speaker is token with the run that it is for, nil if that has ended.
func (h *Hub) speaker(text string) (domain.Token, *liveRun, error) {
	hash := sha256.Sum256([]byte(text))
	h.mu.Lock()
	token, ok := h.tokens[hash]
	live := h.live[token.Run]
	h.mu.Unlock()
	if !ok || subtle.ConstantTimeCompare(token.Hash, hash[:]) != 1 {
		return domain.Token{}, nil, errInvalidToken
	}
	return token, live, nil
}

// speakerOf is speaker for a token that is refused for the task of another
// run: task is any id of it, or "" where none is named.
func (h *Hub) speakerOf(ctx context.Context, text, task string) (domain.Token, *liveRun, error) {
	token, live, err := h.speaker(text)
	if err != nil || task == "" || live != nil && live.task == task { // nearly always
		return token, live, err
	}
	id, err := h.store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Run:
		return domain.Token{}, nil, errOthersToken
	case err != nil:
		return domain.Token{}, nil, stored(err)
	}
	return token, live, nil
}

// CheckTokenOf reports whether a token that a client sent is good for the
// conversation of a run or thread, which any of its ids names. "" is, for all.
func (h *Hub) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := h.token(token)
	if err != nil {
		return err
	}
	s, err := h.Session(ctx, id)
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
	_, err := h.token(token)
	return err
}
