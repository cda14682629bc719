package schema_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// Types whose members are hard to determine. All fields are exported or embedded, none is empty
// and none is a nil pointer.
type (
	Deep   struct{ X, Both, Deepest int }
	Middle struct {
		Deep
		X    string
		Both string
	}
	OtherMiddle struct{ Both string }
	Tagged      struct {
		A int `json:"B"`
	}
	PlainB       struct{ B int }
	hidden       struct{ Shown int }
	ByPointer    struct{ P int }
	Named        struct{ Inside int }
	EmbeddedText string
	SelfEmbedded struct {
		*SelfEmbedded
		Own int
	}
)

var memberCases = map[string]any{
	"plain": struct{ A, B int }{},
	"tags": struct {
		A int `json:"a"`
		B int `json:"b"`
		C int
	}{},
	"dash":                oddTags(`json:"-"`, `json:"-,"`),
	"names that are none": oddTags(`json:"a\\b"`, `json:"a\"b"`, `json:"ok!#"`),
	"tagged twice":        oddTags(`json:"x"`, `json:"y"`, `json:"x"`),
	"options without a name": struct {
		A int `json:",omitzero"`
		B int `json:",string"`
	}{A: 1},
	"embedded": struct {
		Middle
		Z int
	}{},
	"embedded, twice as deep": struct {
		Middle
		OtherMiddle
	}{},
	"a tag against a name": struct {
		Tagged
		PlainB
	}{},
	"embedded, unexported": struct {
		hidden
		Z int
	}{},
	"embedded, by pointer": struct{ *ByPointer }{&ByPointer{}},
	"embedded, with a name": struct {
		Named `json:"named"`
	}{},
	"embedded, no struct": struct{ EmbeddedText }{},
	"embedded in itself":  SelfEmbedded{},
	"embedded twice, at one depth": struct {
		Middle
		M struct{ Deep }
	}{},
}

// oddTags makes a struct of integers with tags that linters reject.
func oddTags(tags ...reflect.StructTag) any {
	var fields []reflect.StructField
	for i, tag := range tags {
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: reflect.TypeFor[int](), Tag: tag})
	}
	return reflect.Zero(reflect.StructOf(fields)).Interface()
}

// A schema has the members that encoding/json gives, and in its order.
func TestMembersAreThoseOfEncodingJSON(t *testing.T) {
	for name, value := range memberCases {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(value)
			require.NoError(t, err)
			want := []string{}
			for quoted := range rawjson.Members(raw) {
				var plain string
				require.NoError(t, json.Unmarshal(quoted, &plain))
				want = append(want, plain)
			}
			got := []string{}
			for _, p := range schema.OfResult(reflect.TypeOf(value)).Properties {
				got = append(got, p.Name)
			}
			assert.Equal(t, want, got, "%s", raw)
		})
	}
}

type colour string

func (colour) Accepted() []string { return []string{"red", "green"} }

type side struct {
	Name string  `json:"name"`
	Area float64 `json:"area,omitempty"`
}

type results struct {
	Always   string     `json:"always"`
	Maybe    *string    `json:"maybe"`
	Left     *string    `json:"left,omitempty"`
	Colour   *colour    `json:"colour"`
	When     *time.Time `json:"when"`
	Big      int64      `json:"big,string"`
	Inner    *side      `json:"inner"`
	Anything any        `json:"anything"`
	*ByPointer
}

// The schema of a result distinguishes omitted fields from null fields. The schema of a parameter
// does not.
func TestSchemasOfResults(t *testing.T) {
	params, result := schema.OfParams(reflect.TypeFor[results]()), schema.OfResult(reflect.TypeFor[results]())
	b, err := json.Marshal(result)
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"object","required":["always","maybe","colour","when","big","inner","anything"],"properties":{
		"always":{"type":"string"},"maybe":{"type":["string","null"]},"left":{"type":"string"},
		"colour":{"type":["string","null"],"enum":["red","green",null]},"when":{"type":["string","null"],"format":"date-time"},
		"big":{"type":"string"},"anything":{},"P":{"type":"integer"},
		"inner":{"type":["object","null"],"required":["name"],"properties":{"name":{"type":"string"},"area":{"type":"number"}}}}}`, string(b))
	assert.Equal(t, "{always: string, maybe: string or null, left?: string, colour: string or null, when: string or null, big: string, "+
		"inner: {name: string, area?: number} or null, anything: any, P?: integer}", result.String())
	assert.Equal(t, "{always: string, maybe?: string, left?: string, colour?: string, when?: string, big: string, "+
		"inner?: {name: string, area?: number}, anything: any, P?: integer}", params.String())
	assert.Equal(t, "{name: string, area?: number} or null", schema.OfResult(reflect.TypeFor[*side]()).String())
	var r results
	require.Nil(t, params.Decode([]byte(`{"always":"a","big":"5","anything":null,"P":0}`), "", &r))
	b, err = rawjson.Encode(r)
	require.NoError(t, err)
	assert.Equal(t, `{"always":"a","maybe":null,"colour":null,"when":null,"big":"5","inner":null,"anything":null,"P":0}`, string(b))
}
