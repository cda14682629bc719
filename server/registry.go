package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// A Registry holds the methods that an endpoint serves. Methods may be added while it is in use.
type Registry struct {
	mu     sync.Mutex // guards byName and order
	byName map[string]*Method
	order  []*Method // in order of registration
	// found is a copy of byName that is read without the lock; nil if methods were added since.
	// A process registers all its methods before it looks one up, so it makes one copy.
	found atomic.Pointer[map[string]*Method]
}

// NewRegistry makes an empty Registry.
func NewRegistry() *Registry { return &Registry{byName: make(map[string]*Method)} }

// A Method is a registered method. Its fields describe it to clients.
type Method struct {
	Name        string
	Doc         string // one sentence or more, from Doc
	LongRunning bool   // runs beside the others, can be cancelled
	Final       bool   // ends the connection
	Releasing   bool   // LongRunning begins with Release

	// Schemas are made on first use: there are many, and clients wait for a process that starts.
	params   func() *schema.Schema
	result   func() *schema.Schema
	check    func(params json.RawMessage) error // runs before invoke, if that must not fail
	invoke   func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	arriving func(ctx context.Context, params json.RawMessage) context.Context // may be nil

	takes, gives reflect.Type // the Go types of the parameters and the result; nil for raw JSON
	typed        any          // the handler, as Handle got it; see Handler

	raw  bool        // works on raw JSON, so it is always fast
	slow atomic.Bool // the last call took long: the queue is written before it runs
}

// Params returns the schema of the parameters: an object, an array for positional parameters, or
// empty for any value. It panics if the type cannot be JSON.
func (m *Method) Params() *schema.Schema { return m.params() }

// Result returns the schema of the result. It panics if the type cannot be JSON.
func (m *Method) Result() *schema.Schema { return m.result() }

// Types returns the Go types of the parameters and the result, for generated code; nil for a method that
// works on raw JSON.
func (m *Method) Types() (params, result reflect.Type) { return m.takes, m.gives }

// An Option configures a method when it is registered.
type Option func(*Method)

// Doc describes the method in words.
func Doc(text string) Option { return func(m *Method) { m.Doc = text } }

// LongRunning makes a method run concurrently with others in its own goroutine. Its context ends
// when the peer cancels the request or the connection ends.
func LongRunning() Option { return func(m *Method) { m.LongRunning = true } }

// Releasing makes a method [LongRunning] from the moment at which its handler calls [Release]. Until
// then the messages behind its request wait, as they do for other methods, so that they find what it
// has done.
func Releasing() Option {
	return func(m *Method) { m.LongRunning, m.Releasing = true, true }
}

// Release is called by the handler of a [Releasing] method before it waits for something slow: the
// connection serves the messages behind its request meanwhile. Elsewhere it does nothing.
func Release(ctx context.Context) {
	if release, ok := ctx.Value(releaseKey{}).(func()); ok {
		release()
	}
}

type releaseKey struct{}

// Arriving calls f for each request of a [LongRunning] method as it arrives, in the order of
// messages, before its handler starts concurrently. f prepares the state that later messages
// must find. The handler gets the context that f returns. params is borrowed until f returns,
// and not checked; f must not block.
func Arriving(f func(ctx context.Context, params json.RawMessage) context.Context) Option {
	return func(m *Method) { m.arriving = f }
}

// Handle registers a method. R is the type of its result, and P of its parameters:
//
//   - A struct, or a pointer to one, takes named parameters: {…}, and [{…}],
//     which some libraries send. Absent, null, [] and [null] are as {}.
//   - A map takes them too, with names of any kind.
//   - A slice takes positional parameters: […]. Absent and null are as []. An
//     array takes as many as it has elements.
//   - any, json.RawMessage and types with a method UnmarshalJSON take any
//     value; absent is as null.
//
// Names, of parameters and in results, are those of encoding/json: a field's tag, else its Go
// name; fields of embedded structs count as fields of the outer one. Unlike there they are
// exact, so that {"Force":true} does not set a field that is called force. Of members with the
// same name the last one counts; members that P does not have are ignored. [schema.Schema] says
// which ones a client must send. A missing or wrong parameter gets -32602 with a [ParamError],
// and the handler is not called. The handler may keep its parameters.
//
// An error that is a *jsonrpc2.Error (see [NewError], [InvalidParam]), or wraps one, goes to the
// peer as it is. Any other error is logged, and the peer gets -32603 and is referred to the log.
//
// Handle panics if the name is taken, or if P is none of the above: JSON-RPC has no parameters
// that are a single string, number or boolean. A type that JSON cannot hold (a channel), or that
// contains itself, fails later: a call is answered with -32603, and so is a description.
func Handle[P, R any](r *Registry, name string, h func(ctx context.Context, params P) (R, error), options ...Option) {
	takes := formOf(reflect.TypeFor[P]())
	if takes == unfit {
		panic(fmt.Sprintf("server: method %q: JSON-RPC has no parameters of the type %v; use a struct for named ones, "+
			"such as struct{ Text string `json:\"text\"` }, or a slice for positional ones", name, reflect.TypeFor[P]()))
	}
	m := &Method{
		Name: name, params: lazySchema[P](schema.OfParams), result: lazySchema[R](schema.OfResult),
		takes: reflect.TypeFor[P](), gives: reflect.TypeFor[R](), typed: h,
	}
	m.check = func(raw json.RawMessage) error {
		var params P
		return takes.decode(raw, m.params, &params)
	}
	m.invoke = func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var params P
		if err := takes.decode(raw, m.params, &params); err != nil {
			return nil, err
		}
		began := time.Now()
		result, err := h(ctx, params)
		m.slow.Store(time.Since(began) > time.Millisecond)
		if err != nil {
			return nil, err
		}
		return rawjson.Encode(result)
	}
	r.add(m, options)
}

// Handler returns the handler of a registered method and its description, to call it in the same
// process: for methods that are other forms of it. It panics if no method has the name and these types.
func Handler[P, R any](r *Registry, name string) (func(ctx context.Context, params P) (R, error), *Method) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.byName[name]
	if m == nil {
		panic(fmt.Sprintf("server: no method %q is registered", name))
	}
	h, ok := m.typed.(func(context.Context, P) (R, error))
	if !ok {
		panic(fmt.Sprintf("server: method %q takes %v and returns %v, not %v and %v", name, m.takes, m.gives, reflect.TypeFor[P](),
			reflect.TypeFor[R]()))
	}
	return h, m
}

// HandleRaw registers a method that works on raw JSON. params is nil or a valid value of any
// type, and the result goes out untouched. Both are borrowed unless the method is long-running:
// the handler must not keep or change params after it returns. It costs no allocation.
func HandleRaw(
	r *Registry, name string, h func(ctx context.Context, params json.RawMessage) (json.RawMessage, error),
	options ...Option,
) {
	r.add(&Method{Name: name, params: anySchema, result: anySchema, check: anyParams, invoke: h, raw: true}, options)
}

// Final makes a method the last one of its connection: later messages are dropped. After its
// reply the peer has a moment to close its side, then the connection ends; another final method
// ends it at once.
//
// It runs concurrently with the requests in flight, so it may wait for them ([Conn.Wait]), and
// does not count as one. Its context ends when the peer leaves. If its parameters are wrong the
// connection continues.
func Final() Option { return func(m *Method) { m.Final = true } }

func lazySchema[T any](of func(reflect.Type) *schema.Schema) func() *schema.Schema {
	return sync.OnceValue(func() *schema.Schema { return of(reflect.TypeFor[T]()) })
}

func anySchema() *schema.Schema { return &schema.Schema{} }

func anyParams(json.RawMessage) error { return nil }

func (r *Registry) add(m *Method, options []Option) {
	for _, o := range options {
		o(m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byName[m.Name]; taken {
		panic(fmt.Sprintf("server: method %q is registered twice", m.Name))
	}
	r.byName[m.Name] = m
	r.order = append(r.order, m)
	r.found.Store(nil)
}

// Methods returns the registered methods, in the order of registration.
func (r *Registry) Methods() []*Method {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

func (r *Registry) lookup(name []byte) *Method {
	found := r.found.Load()
	if found == nil {
		r.mu.Lock()
		methods := maps.Clone(r.byName)
		found = &methods
		r.found.Store(found)
		r.mu.Unlock()
	}
	return (*found)[string(name)]
}

// form is the form in which a type takes parameters.
type form uint8

const (
	unfit      form = iota // none: JSON-RPC's parameters are an object or an array
	byName                 // an object
	byPosition             // an array
	anyForm                // any value
)

// formOf returns the form in which a type takes parameters.
func formOf(t reflect.Type) form {
	switch schema.KindOf(t) {
	case schema.Any:
		return anyForm
	case schema.Object:
		return byName
	case schema.Array:
		return byPosition
	}
	return unfit
}

// decode checks raw against the schema and decodes it.
func (f form) decode(raw json.RawMessage, of func() *schema.Schema, into any) error {
	var bad *ParamError
	none := false // there is nothing to decode
	path := ""
	switch f {
	case byName:
		if raw, bad = namedParams(raw); raw == nil {
			raw, none = json.RawMessage("{}"), reflect.TypeOf(into).Elem().Kind() == reflect.Struct
		}
	case byPosition:
		path = "params"
		raw, bad = positionalParams(raw, reflect.TypeOf(into).Elem())
	}
	if bad != nil {
		return InvalidParam(*bad)
	}
	var wrong *schema.Mismatch
	switch {
	case len(raw) == 0:
	case f == anyForm:
		wrong = schema.Unmarshal(raw, into)
	case none:
		wrong = of().Check(raw, path)
	default:
		wrong = of().Decode(raw, path, into)
	}
	if wrong != nil {
		return InvalidParam(ParamError{
			Param: cmp.Or(wrong.Path, "params"), Expected: wrong.Expected, Received: wrong.Received,
			Accepted: wrong.Accepted,
		})
	}
	return nil
}

// positionalParams normalises positional parameters to an array, for a type with any number of
// them, or with the length of an array type.
func positionalParams(raw json.RawMessage, t reflect.Type) (json.RawMessage, *ParamError) {
	if len(raw) == 0 || raw[0] == 'n' {
		raw = json.RawMessage("[]")
	}
	if raw[0] != '[' {
		return nil, &ParamError{Param: "params", Expected: "array", Received: schema.TypeOf(raw)}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Array {
		n := 0
		for range rawjson.Elements(raw) {
			n++
		}
		if n != t.Len() {
			return nil, &ParamError{
				Param: "params", Expected: fmt.Sprintf("array of %d", t.Len()), Received: fmt.Sprintf("array of %d", n),
			}
		}
	}
	return raw, nil
}

// namedParams normalises a method's named parameters: absent, null, {}, [] and [null] mean none
// (nil); {…} or [{…}] are the object; anything else is wrong. (jsonrpc.el and vscode-jsonrpc
// send all of these.)
func namedParams(raw json.RawMessage) (json.RawMessage, *ParamError) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, received := raw, schema.TypeOf(raw)
	if received == "array" {
		n := 0
		value = nil
		for element := range rawjson.Elements(raw) {
			value = element
			n++
		}
		if n > 1 {
			return nil, &ParamError{Param: "params", Expected: "object", Received: fmt.Sprintf("array of %d", n)}
		}
		if n == 1 {
			received = "array of " + schema.TypeOf(value)
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
