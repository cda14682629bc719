package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// A pushService is the service of a browser (RFC 8030), with the browser's own keys.
type pushService struct {
	*httptest.Server
	key  *ecdh.PrivateKey
	auth []byte

	mu     sync.Mutex
	gone   bool
	trusts string // the file with its certificate
	got    []pushed
}

// A pushed message, and how it came.
type pushed struct {
	header http.Header
	Tag    string
	Title  string
	Body   string

	Project, Approval, Fingerprint string
	Actions, Withdrawn             bool
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	p := &pushService{auth: make([]byte, 16)}
	rand.Read(p.auth)
	var err error
	p.key, err = ecdh.P256().GenerateKey(rand.Reader)
	require.NoError(t, err)
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.gone {
			w.WriteHeader(http.StatusGone)
			return
		}
		body, err := io.ReadAll(r.Body)
		if !assert.NoError(t, err) {
			return
		}
		message := pushed{header: r.Header}
		assert.NoError(t, json.Unmarshal(p.decrypted(t, body), &message))
		p.got = append(p.got, message)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(p.Close)
	p.trusts = filepath.Join(t.TempDir(), "service.pem")
	require.NoError(t, os.WriteFile(p.trusts, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600))
	return p
}

// subscription is what a browser gives its page.
func (p *pushService) subscription() object {
	text := base64.RawURLEncoding.EncodeToString
	return object{"endpoint": p.URL + "/for/me", "keys": object{"p256dh": text(p.key.PublicKey().Bytes()), "auth": text(p.auth)}}
}

// decrypted decrypts a message as the browser does (RFC 8188 and 8291).
func (p *pushService) decrypted(t *testing.T, body []byte) []byte {
	salt, rest := body[:16], body[16:]
	size := int(rest[4])
	assert.LessOrEqual(t, len(body), int(binary.BigEndian.Uint32(rest[:4])), "one record")
	theirs, err := ecdh.P256().NewPublicKey(rest[5 : 5+size])
	require.NoError(t, err)
	secret, err := p.key.ECDH(theirs)
	require.NoError(t, err)
	expand := func(secret, salt []byte, info string, n int) []byte {
		out, err := hkdf.Key(sha256.New, secret, salt, info, n)
		require.NoError(t, err)
		return out
	}
	ikm := expand(secret, p.auth, "WebPush: info\x00"+string(p.key.PublicKey().Bytes())+string(theirs.Bytes()), 32)
	block, err := aes.NewCipher(expand(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	text, err := gcm.Open(nil, expand(ikm, salt, "Content-Encoding: nonce\x00", 12), rest[5+size:], nil)
	require.NoError(t, err)
	text = []byte(strings.TrimRight(string(text), "\x00"))
	return text[:len(text)-1] // the last record's delimiter
}

// await waits for a message.
func (p *pushService) await(t *testing.T, fits func(pushed) bool) (found pushed) {
	t.Helper()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.got {
			if fits(m) {
				found = m
				return true
			}
		}
		return false
	}, e2e.Watchdog, e2e.PollEvery)
	return found
}

// A question is pushed once to each device that wants it, with what its user chose to let out, and withdrawn when it is answered.
func TestPush(t *testing.T) {
	service := newPushService(e2e.Parallel(t))
	s := e2e.NewDaemonSite(t)
	s.Env = append(s.Env, "SSL_CERT_FILE="+service.trusts)
	said := filepath.Join(s.Home, "said")
	s.Agents("[notify]\ncommand = [\"sh\", \"-c\", 'echo \"$DUET_TITLE: $DUET_BODY $DUET_URL\" >>" + said + "']\n")
	w, code := serve(t, s)
	phone := w.pair(code, "Phone")
	p := phone.open()
	require.ErrorIs(t, p.Call(t.Context(), "web.push.test", object{}, nil), client.Kind("not_subscribed"))
	require.Error(t, p.Call(t.Context(), "web.push.set", object{"subscription": object{"endpoint": "http://127.0.0.1:1/x", "keys": object{}}, "content": "none"}, nil))
	p.call("web.push.set", object{"subscription": service.subscription(), "content": "none", "answers": true}, nil)
	p.call("web.push.test", object{}, nil)
	test := service.await(t, func(m pushed) bool { return m.Tag == "test" })
	assert.Contains(t, test.header.Get("Authorization"), "vapid t=")
	assert.Equal(t, "high", test.header.Get("Urgency"))

	s.Begin()
	editor := s.Open()
	l := editor.Launch("write it", "")
	q := p.asks()
	first := service.await(t, func(m pushed) bool { return m.Approval == q.Approval.Approval })
	assert.Equal(t, []any{"Duet", "A session needs you.", false, q.Approval.Fingerprint}, []any{first.Title, first.Body, first.Actions, first.Fingerprint},
		"nothing of the content leaves this machine")
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(said)
		return strings.HasPrefix(string(text), "Duet: A session needs you. "+w.url+"/#/question/")
	}, e2e.Watchdog, e2e.PollEvery)

	// Without the user's choice no notification answers.
	assert.Equal(t, http.StatusForbidden, statusOf(w, phone, object{
		"project": q.Project, "approval": q.Approval.Approval, "fingerprint": q.Approval.Fingerprint, "decision": "approve",
	}))
	p.call("web.push.set", object{"subscription": service.subscription(), "content": "all", "answers": true}, nil)
	decide := func(fingerprint, key string) (int, object) {
		status, answer, _ := w.request("POST", "/decide",
			object{"project": q.Project, "approval": q.Approval.Approval, "fingerprint": fingerprint, "decision": "approve"},
			func(r *http.Request) { r.Header.Set("Cookie", phone.cookie); r.Header.Set("Duet-Key", key) })
		return status, answer
	}
	status, _ := decide(q.Approval.Fingerprint, "stolen cookie, no key")
	assert.Equal(t, http.StatusUnauthorized, status)
	_, answer := decide("of another question", phone.key)
	assert.Equal(t, false, answer["success"])
	_, answer = decide(q.Approval.Fingerprint, phone.key)
	assert.Equal(t, true, answer["success"], "%v", answer)
	_, answer = decide(q.Approval.Fingerprint, phone.key)
	assert.Equal(t, false, answer["success"], "a replayed decision")
	editor.Completes(l)
	service.await(t, func(m pushed) bool { return m.Withdrawn && m.Tag == first.Tag })
	service.mu.Lock()
	count := 0
	for _, m := range service.got {
		if m.Approval != "" {
			count++
		}
	}
	service.gone = true
	service.mu.Unlock()
	assert.Equal(t, 1, count, "one notification a question")

	// A browser that has ended its subscription gets no more.
	require.ErrorIs(t, p.Call(t.Context(), "web.push.test", object{}, nil), client.Kind("push_failed"))
	require.ErrorIs(t, p.Call(t.Context(), "web.push.test", object{}, nil), client.Kind("not_subscribed"))
	e2e.Leave(editor)
}
