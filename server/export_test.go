package server

import "reflect"

// SchemaOf is the schema of a type that is a result.
func SchemaOf(t reflect.Type) *Schema { return schemaOf(t, asResult) }
