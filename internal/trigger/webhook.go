package trigger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const (
	sendTimeout = 10 * time.Second
	sendAtOnce  = 4
	mostAnswer  = 64 << 10 // bytes of an answer that are read, and thrown away
)

// A sender sends events to addresses. What was begun and not ended when the process died
// is not sent again: whoever gets it may have it.
type sender struct {
	ctx    context.Context
	tasks  *background.Group
	sent   func(domain.TriggerExecution) // notes what became of it
	client *http.Client
	slots  chan struct{}
}

func newSender(ctx context.Context, tasks *background.Group, sent func(domain.TriggerExecution)) *sender {
	return &sender{ctx: ctx, tasks: tasks, sent: sent, slots: make(chan struct{}, sendAtOnce), client: &http.Client{
		Timeout:       sendTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // another host was not allowed
	}}
}

// send sends the event of an execution, and has it noted what became of that. It does
// not block.
func (s *sender) send(x domain.TriggerExecution, address string) {
	s.tasks.Go(func() {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		err := s.post(s.ctx, x, address)
		if s.ctx.Err() != nil {
			return // the next start notes that nobody knows whether it arrived
		}
		x.Status = domain.TriggerSent
		if err != nil {
			x.Status, x.Error = domain.TriggerError, err.Error()
		}
		s.sent(x)
	})
}

func (s *sender) post(ctx context.Context, x domain.TriggerExecution, address string) error {
	body, err := json.Marshal(struct {
		RuleID    string          `json:"ruleId"`
		Execution int64           `json:"execution_id"`
		Event     json.RawMessage `json:"event"`
	}{x.Trigger, x.ID, x.Event})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "duet-rpc")
	response, err := s.client.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed): // without the address, of which a part may be secret
		return fmt.Errorf("%s: %s", request.URL.Host, cut(failed.Err.Error(), 500))
	case err != nil:
		return errors.New(cut(err.Error(), 500))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, mostAnswer)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", request.URL.Host, response.Status)
	}
	return nil
}
