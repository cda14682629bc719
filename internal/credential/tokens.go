package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

var errInvalidToken = domain.Errorf(domain.KindInvalidToken, "the session token is unknown, or its turn has ended")

// Token is what a session token authorizes.
type Token struct {
	Session int64
	Turn    int64
	Task    string // the turn's id for executors
}

// Tokens holds the valid session tokens. Its methods may be called from any goroutine. They are not
// stored, because executors end with their process, so no token of an earlier process is in use.
type Tokens struct {
	mu     sync.Mutex // guards byHash
	byHash map[[sha256.Size]byte]Token
}

// NewTokens makes an empty set.
func NewTokens() *Tokens { return &Tokens{byHash: make(map[[sha256.Size]byte]Token)} }

// Commit calls functions after a commit, as store.Tx does.
type Commit interface {
	AfterCommit(func())
}

// Issue returns a new token for a turn: 256 random bits in hexadecimal. It is valid from the commit
// until the turn is revoked, however long the turn waits for a person.
func (t *Tokens) Issue(change Commit, turn domain.Turn) string {
	secret := make([]byte, 32)
	rand.Read(secret)
	text := hex.EncodeToString(secret)
	change.AfterCommit(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.byHash[sha256.Sum256([]byte(text))] = Token{Session: turn.Session, Turn: turn.ID, Task: turn.UUID}
	})
	return text
}

// Revoke invalidates the tokens of a turn.
func (t *Tokens) Revoke(turn int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byHash, func(_ [sha256.Size]byte, token Token) bool { return token.Turn == turn })
}

// Find returns what a token authorizes. An invalid one is an error of [domain.KindInvalidToken].
// Tokens are found by hash, so the time reveals nothing about them.
func (t *Tokens) Find(text string) (Token, error) {
	hash := sha256.Sum256([]byte(text))
	t.mu.Lock()
	defer t.mu.Unlock()
	token, ok := t.byHash[hash]
	if !ok {
		return Token{}, errInvalidToken
	}
	return token, nil
}
