// Package schema describes the JSON of Go types, by the rules of encoding/json, and checks JSON
// from elsewhere against the description. It makes a [Schema] from a type ([OfParams],
// [OfResult]). A Schema is shown to clients as a JSON Schema, and decodes JSON ([Schema.Decode])
// with errors that say which value is wrong.
//
// It knows nothing of JSON-RPC.
package schema
