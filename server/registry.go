package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// A Registry holds the methods that an endpoint serves. Methods may be added
// while it is in use.
type Registry struct {
	mu     sync.Mutex // serialises writers
	byName atomic.Pointer[map[string]*Method]
	order  []*Method // as registered; guarded by mu
}

// NewRegistry makes an empty Registry.
func NewRegistry() *Registry {
	r := &Registry{}
	r.byName.Store(&map[string]*Method{})
	return r
}

// A Method is a registered method. Its fields describe it to clients.
type Method struct {
	Name        string
	Doc         string // one sentence or more, from Doc
	LongRunning bool   // runs beside the others, can be cancelled
	Final       bool   // ends the connection

	// Schemas are made when first asked for: there are many, and a process
	// that has just been started is waited for.
	params func() *Schema
	result func() *Schema
	check  func(params json.RawMessage) error // before invoke, where that must not fail
	invoke func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	raw    bool        // works on raw JSON, so it is fast and cannot be slow
	slow   atomic.Bool // took long before: what is queued is written before it runs
}

// Params is the schema of the parameters: an object, or empty for any value.
// It panics if the type has no JSON.
func (m *Method) Params() *Schema { return m.params() }

// Result is the schema of the result. It panics if the type has no JSON.
func (m *Method) Result() *Schema { return m.result() }

// An Option says more about a method when it is registered.
type Option func(*Method)

// Doc describes the method in words.
func Doc(text string) Option { return func(m *Method) { m.Doc = text } }

// LongRunning makes a method run beside the others in a goroutine of its own.
// Its context ends when the peer cancels the request or the connection ends.
func LongRunning() Option { return func(m *Method) { m.LongRunning = true } }

// Handle registers a method. P, a struct, is the type of its parameters and R
// of its result; both follow encoding/json, and [Schema] says which members a
// client must send. The handler may keep what it is given.
//
// An error that is a *jsonrpc2.Error (see [NewError], [InvalidParam]) goes to
// the peer as it is; any other is logged, and the peer gets -32603.
//
// Handle panics if the name is taken.
func Handle[P, R any](r *Registry, name string, h func(ctx context.Context, params P) (R, error), options ...Option) {
	m := &Method{Name: name, params: lazySchema[P](), result: lazySchema[R]()}
	m.check = func(raw json.RawMessage) error {
		var params P
		return m.decode(raw, &params)
	}
	m.invoke = func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var params P
		if err := m.decode(raw, &params); err != nil {
			return nil, err
		}
		began := time.Now()
		result, err := h(ctx, params)
		m.slow.Store(time.Since(began) > time.Millisecond)
		if err != nil {
			return nil, err
		}
		return encode(result)
	}
	r.add(m, options)
}

// HandleRaw registers a method that works on raw JSON: params is nil or a
// valid value of any type, and the result goes out untouched. Both are only
// borrowed unless the method is long-running: params is not to be kept or
// changed after the handler returns. It costs no allocation.
func HandleRaw(r *Registry, name string, h func(ctx context.Context, params json.RawMessage) (json.RawMessage, error), options ...Option) {
	r.add(&Method{Name: name, params: anySchema, result: anySchema, check: anyParams, invoke: h, raw: true}, options)
}

// Final makes a method the last one of its connection: what arrives behind it
// is dropped, and when it has answered, and the peer has had a moment to close
// its side, the connection ends; another final method ends it at once. It runs beside the
// requests that are in flight, so it may wait for them ([Conn.Wait]), and does
// not count as one; its context ends with the peer. If its parameters are
// wrong the connection goes on.
func Final() Option { return func(m *Method) { m.Final = true } }

func lazySchema[T any]() func() *Schema {
	return sync.OnceValue(func() *Schema { return schemaOf(reflect.TypeFor[T]()) })
}

func anySchema() *Schema { return &Schema{} }

func anyParams(json.RawMessage) error { return nil }

func (r *Registry) add(m *Method, options []Option) {
	for _, o := range options {
		o(m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := *r.byName.Load()
	if _, taken := old[m.Name]; taken {
		panic(fmt.Sprintf("server: method %q is registered twice", m.Name))
	}
	next := maps.Clone(old)
	next[m.Name] = m
	r.byName.Store(&next)
	r.order = append(r.order, m)
}

// Methods lists what is registered, in the order of registration.
func (r *Registry) Methods() []*Method {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

func (r *Registry) lookup(name []byte) *Method { return (*r.byName.Load())[string(name)] }

// decode checks raw against the method's parameters and decodes it.
func (m *Method) decode(raw json.RawMessage, into any) error {
	named, bad := namedParams(raw)
	if bad == nil && m.params().Type == "object" {
		if named == nil {
			named = json.RawMessage("{}")
		}
		bad = m.params().check(named, "")
	}
	if bad != nil {
		return InvalidParam(*bad)
	}
	if named == nil {
		return nil
	}
	if err := json.Unmarshal(named, into); err != nil { // a number out of range, mostly
		e := ParamError{Param: "params", Expected: "values in range", Received: "a value that does not fit"}
		if t, ok := err.(*json.UnmarshalTypeError); ok {
			e = ParamError{Param: t.Field, Expected: t.Type.String(), Received: clip(t.Value)}
		}
		return InvalidParam(e)
	}
	return nil
}

// namedParams gives a method's named parameters their one form: absent, null, {},
// [] and [null] mean none (nil); {…} or [{…}] are the object; anything else is
// wrong (DESIGN section 4; jsonrpc.el and vscode-jsonrpc send all of these).
func namedParams(raw json.RawMessage) (json.RawMessage, *ParamError) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, received := raw, typeName(raw)
	if received == "array" {
		n := 0
		value = nil
		for element := range frame.Elements(raw) {
			value = element
			n++
		}
		if n > 1 {
			return nil, &ParamError{Param: "params", Expected: "object", Received: fmt.Sprintf("array of %d", n)}
		}
		if n == 1 {
			received = "array of " + typeName(value)
		}
	}
	switch {
	case len(value) == 0 || value[0] == 'n':
		return nil, nil
	case value[0] == '{':
		return value, nil
	}
	return nil, &ParamError{Param: "params", Expected: "object", Received: received}
}
