package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Content is what a notification says of a question.
type Content string

// The values of [Content].
const (
	ContentNone  Content = "none"  // that a session needs the user
	ContentTitle Content = "title" // also the project, and the session's title
	ContentAll   Content = "all"   // also the question: the command, or the change
)

// Accepted implements schema.Enum.
func (Content) Accepted() []string {
	return []string{string(ContentNone), string(ContentTitle), string(ContentAll)}
}

// A Push is a device's wish for notifications.
type Push struct {
	Subscription webpush.Subscription `json:"subscription"`
	Content      Content              `json:"content"`
	Answers      bool                 `json:"answers"` // the user may answer in the notification, which needs ContentAll
}

// pushKey is the key pair with which this server signs for push services (RFC 8292).
type pushKey struct {
	Private string `json:"private"`
	Public  string `json:"public"`
}

type pushInfo struct {
	PublicKey string  `json:"public_key"`
	On        bool    `json:"on"`
	Content   Content `json:"content"`
	Answers   bool    `json:"answers"`
}

// key returns the server's key pair. It makes one at the first use.
func (d *Devices) key() (pair pushKey, err error) {
	f, err := d.read()
	if err == nil && f.Push == nil {
		err = d.update(func(f *devicesFile) (err error) {
			if f.Push == nil {
				f.Push = &pushKey{}
				f.Push.Private, f.Push.Public, err = webpush.GenerateVAPIDKeys()
			}
			pair = *f.Push
			return err
		})
		return pair, err
	}
	if err == nil {
		pair = *f.Push
	}
	return pair, err
}

func (d *Devices) pushInfo(device Device) (pushInfo, error) {
	pair, err := d.key()
	info := pushInfo{PublicKey: pair.Public, Content: ContentNone}
	if device.Push != nil {
		info.On, info.Content, info.Answers = true, device.Push.Content, device.Push.Answers
	}
	return info, err
}

type setPushParams struct {
	Subscription *webpush.Subscription `json:"subscription"`
	Content      Content               `json:"content"`
	Answers      bool                  `json:"answers"`
}

const longestEndpoint = 2 << 10

// setPush stores the page's wish for notifications; without a subscription it wants none.
func (c *connection) setPush(_ context.Context, p setPushParams) (empty, error) {
	var wish *Push
	if p.Subscription != nil {
		u, err := url.Parse(p.Subscription.Endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(p.Subscription.Endpoint) > longestEndpoint {
			return empty{}, server.InvalidParam(server.ParamError{
				Param: "subscription.endpoint", Expected: "the https address of a push service", Received: "another text",
			})
		}
		if !slices.Contains(Content("").Accepted(), string(p.Content)) {
			return empty{}, server.InvalidParam(server.ParamError{
				Param: "content", Expected: "none, title or all", Received: fmt.Sprintf("%.40q", p.Content), Accepted: Content("").Accepted(),
			})
		}
		wish = &Push{*p.Subscription, p.Content, p.Answers && p.Content == ContentAll}
	}
	return empty{}, c.server.devices.change(c.id, func(_ *devicesFile, device *Device) { device.Push = wish })
}

// testPush sends the page's device a notification.
func (c *connection) testPush(ctx context.Context, _ empty) (empty, error) {
	device, err := c.server.devices.WithID(c.id)
	if err == nil && device.Push == nil {
		err = refusal("not_subscribed", "this device wants no notifications: switch them on first")
	}
	if err == nil {
		err = c.server.pusher.send(ctx, device, pushMessage{Tag: "test", Title: "Duet", Body: "Notifications work."})
		if err != nil {
			err = refusal("push_failed", "the push service refused the notification: %v", err)
		}
	}
	return empty{}, err
}

// pushMessage is the text of a push message, which only the device can decrypt (RFC 8291).
type pushMessage struct {
	Tag         string `json:"tag"`
	Title       string `json:"title,omitempty"`
	Body        string `json:"body,omitempty"`
	Project     string `json:"project,omitempty"`
	Approval    string `json:"approval,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Actions     bool   `json:"actions,omitempty"`
	Withdrawn   bool   `json:"withdrawn,omitempty"`
}

// Notify has ways to notify without a browser.
type Notify struct {
	// Command gets the notification in the variables DUET_TITLE, DUET_BODY and DUET_URL; none: no command.
	Command []string
	// Webhook gets a POST request with the text as its body, and the headers Title, Click and Tags, as ntfy has them; "": none.
	Webhook string
	Content Content
}

const (
	pushWithin   = 20 * time.Second
	pushTries    = 3
	pushLasts    = 24 * 60 * 60 // seconds: how long a push service keeps a message for a device that is off
	longestShown = 240          // of a notification, in bytes
)

// A pusher notifies devices of questions: once of each, and again when it is answered. It may be used by any goroutine.
type pusher struct {
	devices *Devices
	notify  Notify
	log     *slog.Logger
	names   *names
	http    *http.Client
	inboxes chan inboxNow          // the newest one waits
	queues  map[string]chan func() // by device, and "" for the command and the webhook; of run alone
	sending sync.WaitGroup
}

// inboxNow are the open questions, with the names of their projects, and the projects whose questions are known.
type inboxNow struct {
	open  []Question
	names map[string]string
	known map[string]bool
}

func newPusher(devices *Devices, notify Notify, log *slog.Logger, names *names) *pusher {
	return &pusher{
		devices: devices, notify: notify, log: log, names: names, inboxes: make(chan inboxNow, 1), queues: map[string]chan func(){},
		http: &http.Client{Timeout: pushWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// asked gets the open questions whenever they change. It does not wait.
func (p *pusher) asked(open []Question, known map[string]bool, nameOf func(id string) string) {
	now := inboxNow{open, map[string]string{}, known}
	for _, q := range open {
		now.names[q.Project] = nameOf(q.Project)
	}
	for {
		select {
		case p.inboxes <- now:
			return
		default:
		}
		select {
		case <-p.inboxes:
		default:
		}
	}
}

// run notifies until ctx ends.
func (p *pusher) run(ctx context.Context) {
	defer p.sending.Wait()
	pushed := p.read()
	for {
		var now inboxNow
		select {
		case <-ctx.Done():
			return
		case now = <-p.inboxes:
		}
		changed := false
		open := map[string]bool{}
		for _, q := range now.open {
			tag := q.tag()
			open[tag] = true
			if _, was := pushed[tag]; !was {
				pushed[tag], changed = q.Project, true
				p.tell(ctx, q, now.names[q.Project])
			}
		}
		for _, tag := range slices.Collect(maps.Keys(pushed)) {
			if !open[tag] && now.known[pushed[tag]] { // the questions of other projects may still be open
				delete(pushed, tag)
				changed = true
				p.toAll(ctx, func(Device) pushMessage { return pushMessage{Tag: tag, Withdrawn: true} })
			}
		}
		if changed {
			p.write(pushed)
		}
	}
}

// mostWaiting are the messages that wait for one device.
const mostWaiting = 64

// queue does something after what was queued for the same device, so that a slow push service holds up no other one.
func (p *pusher) queue(ctx context.Context, device string, do func()) {
	queue := p.queues[device]
	if queue == nil {
		queue = make(chan func(), mostWaiting)
		p.queues[device] = queue
		p.sending.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case do := <-queue:
					do()
				}
			}
		})
	}
	select {
	case queue <- do:
	default:
		p.log.Warn("a notification was dropped: too many wait", "device", device)
	}
}

func (p *pusher) path() string { return filepath.Join(p.devices.dir, "notified.json") }

// read returns the tags of the questions of which the devices were notified, also by the process before this one, with their projects.
func (p *pusher) read() map[string]string {
	pushed := map[string]string{}
	text, err := os.ReadFile(p.path())
	if err == nil {
		err = json.Unmarshal(text, &pushed)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("it is not known which questions were notified", "err", err)
	}
	if err != nil || pushed == nil {
		return map[string]string{}
	}
	return pushed
}

func (p *pusher) write(pushed map[string]string) {
	text, _ := json.Marshal(pushed) // strings: encoding cannot fail
	if err := durable.Replace(p.path(), text, 0o600); err != nil {
		p.log.Warn("it cannot be stored which questions were notified", "err", err)
	}
}

// tag names the notification of a question on every device.
func (q Question) tag() string {
	sum := sha256.Sum256([]byte(q.Project + "\x00" + q.read.ApprovalID))
	return hex.EncodeToString(sum[:12])
}

// tell notifies all devices of a question.
func (p *pusher) tell(ctx context.Context, q Question, project string) {
	p.toAll(ctx, func(d Device) pushMessage { return q.message(d.Push.Content, d.Push.Answers, project) })
	if len(p.notify.Command) == 0 && p.notify.Webhook == "" {
		return
	}
	m := q.message(p.notify.Content, false, project)
	link := p.names.URL() + "/#/question/" + url.PathEscape(q.Project) + "/" + url.PathEscape(q.read.ApprovalID)
	p.queue(ctx, "", func() {
		if err := p.command(ctx, m, link); err != nil && ctx.Err() == nil {
			p.log.Warn("the command of [notify] failed", "err", err)
		}
		if err := p.post(ctx, m, link); err != nil && ctx.Err() == nil {
			p.log.Warn("the webhook of [notify] failed", "err", err)
		}
	})
}

// message is the notification of a question.
func (q Question) message(content Content, answers bool, project string) pushMessage {
	m := pushMessage{
		Tag: q.tag(), Title: "Duet", Body: "A session needs you.", Project: q.Project, Approval: q.read.ApprovalID, Fingerprint: q.read.Fingerprint,
	}
	if content == ContentTitle || content == ContentAll {
		m.Title, m.Body = project, fmt.Sprintf("%s in session %d", strings.TrimSpace(q.read.Agent+" asks"), q.read.Session)
	}
	if content == ContentAll {
		body, whole := q.text()
		m.Body = body
		// A button for what the notification does not show would be blind.
		m.Actions = answers && whole && q.read.Type == protocol.FunctionCall && len(q.read.Options) == 0
	}
	return m
}

// text returns what a person decides on, in a few words, and whether that is all of it.
func (q Question) text() (text string, whole bool) {
	text = q.read.Title
	whole = q.read.Diff == "" && q.read.Plan == "" && q.read.Details == "" && !q.read.Truncated && q.read.TextMember == "command"
	var input map[string]string
	if json.Unmarshal(q.read.ToolInput, &input) == nil && whole {
		text = input[q.read.TextMember]
		whole = len(input) == 1 || len(input) == 2 && input["description"] != ""
	} else {
		whole = false
	}
	if len(text) <= longestShown {
		return text, whole
	}
	cut := text[:longestShown]
	for !utf8.ValidString(cut) && len(cut) > longestShown-utf8.UTFMax {
		cut = cut[:len(cut)-1]
	}
	return cut + "…", false
}

// toAll sends each device that wants notifications its message.
func (p *pusher) toAll(ctx context.Context, of func(Device) pushMessage) {
	devices, err := p.devices.List()
	if err != nil {
		p.log.Error("the devices cannot be read", "err", err)
		return
	}
	for _, d := range devices {
		if d.Push == nil {
			continue
		}
		m := of(d)
		p.queue(ctx, d.ID, func() {
			if err := p.send(ctx, d, m); err != nil && ctx.Err() == nil {
				p.log.Warn("a device got no notification", "device", d.Name, "err", err)
			}
		})
	}
}

// errGone is the error for a subscription that its browser has ended.
var errGone = errors.New("the browser has ended its subscription")

// send sends a device a push message, and tries again while the push service has trouble.
func (p *pusher) send(ctx context.Context, d Device, m pushMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	pair, err := p.devices.key()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err = p.sendOnce(ctx, d, pair, text, m.Tag)
		if errors.Is(err, errGone) {
			return errors.Join(err, p.devices.change(d.ID, func(_ *devicesFile, device *Device) { device.Push = nil }))
		}
		if err == nil || try == pushTries || !isAliveAfter(ctx, time.Duration(try)*time.Second) {
			return err
		}
	}
}

func (p *pusher) sendOnce(ctx context.Context, d Device, pair pushKey, text []byte, tag string) error {
	r, err := webpush.SendNotificationWithContext(ctx, text, &d.Push.Subscription, &webpush.Options{
		HTTPClient: p.http, TTL: pushLasts, Urgency: webpush.UrgencyHigh, Topic: tag, Subscriber: p.subscriber(),
		VAPIDPublicKey: pair.Public, VAPIDPrivateKey: pair.Private,
	})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, longestBody)) // for the next request on this connection
	switch {
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return errGone
	case r.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("the push service answered %s", r.Status)
	}
	return nil
}

// subscriber is whom a push service may turn to (RFC 8292). This server has no address of a person.
func (p *pusher) subscriber() string {
	if p.names.isSecure() {
		return p.names.URL()
	}
	return "https://localhost"
}

// command runs the command of [notify].
func (p *pusher) command(ctx context.Context, m pushMessage, link string) error {
	if len(p.notify.Command) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, pushWithin)
	defer cancel()
	cmd := exec.CommandContext(within, p.notify.Command[0], p.notify.Command[1:]...)
	cmd.Env = append(os.Environ(), "DUET_TITLE="+m.Title, "DUET_BODY="+m.Body, "DUET_URL="+link)
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// post calls the webhook of [notify].
func (p *pusher) post(ctx context.Context, m pushMessage, link string) error {
	if p.notify.Webhook == "" {
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.notify.Webhook, bytes.NewBufferString(m.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Title", headerText(m.Title))
	r.Header.Set("Click", link)
	r.Header.Set("Tags", "question")
	answer, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the webhook answered %s", answer.Status)
	}
	return nil
}

// headerText is a text for a header, which has no line ends and no letters beyond ASCII but encoded (RFC 2047).
func headerText(text string) string {
	return mime.QEncoding.Encode("utf-8", strings.Join(strings.Fields(text), " "))
}
