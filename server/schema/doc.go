// Package schema describes the JSON of Go types, by the rules of encoding/json,
// and holds JSON that came from elsewhere against the description: a [Schema]
// is made from a type ([OfParams], [OfResult]), shown to others as a JSON Schema,
// and used to decode ([Schema.Decode]) with errors that say which value is wrong.
//
// It knows nothing of JSON-RPC.
package schema
